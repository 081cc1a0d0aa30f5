"""One archive for a site without internet: what goes in, how it is fetched, written and unpacked."""
