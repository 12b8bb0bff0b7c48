"""The commands of `march`, one file each: options in, calls of the other rooms, what a person reads out."""
