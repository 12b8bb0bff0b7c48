"""`march inspect`: what a training run did, in the terminal and as a page."""
