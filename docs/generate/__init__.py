"""What the guide does not say by hand: made from the header, the library and the results."""
