"""Tables as they are: columns of numbers, dates and levels with gaps, and rows of numbers made of them.

table       columns as they came
frames      from pandas, polars, Arrow and arrays to those
summary     what one pass over a table tells of a column, joined from parts; quantiles, a sketch
columns     what becomes of a column of each kind: a function of its values, drawn once
kinds       what columns are, in parts that may not agree
plan        which of them, by summaries and options, with a word on each
encoding    all columns together
"""
