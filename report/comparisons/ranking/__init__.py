"""All that did one work in order: systems, and frameworks, by the places that their ranges allow."""
