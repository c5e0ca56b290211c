"""What is there to see of a hang: the table, the graph of waits, the last operations of each rank?"""
