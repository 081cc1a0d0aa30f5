"""The host side of gpudyno: what to measure, where it runs, and the records it leaves. Imports no torch."""
