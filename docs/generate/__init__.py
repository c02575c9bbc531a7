"""Makes the parts of the guide that come from the headers, the library and the results."""
