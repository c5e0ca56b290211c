"""What do the Flight Recorder dumps of a job say, each in short, and which of them can be relied on?

Files, folders and archives are read in processes of their own, under limits; nothing in them is run.
"""
