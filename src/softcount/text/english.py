"""Words of English that say how a sentence is built rather than what it is about."""

_LINES = """
the an this that these those some any each every either neither both all another other such
of to in on at by for from with without into onto upon over under between among through during before after
about against until since within as than like off out up down
and or but nor so yet if because while although though unless whether
it its itself he him his himself she her hers herself they them their theirs themselves
we us our ours ourselves you your yours yourself yourselves me my mine myself
who whom whose which what when where why how there here
is am are was were be been being do does did doing done has have had having
will would shall should can could may might must cannot
not no very too also just only even then now again ever never more most much many few less own same once
"""

ENGLISH = tuple(_LINES.split())
"""Letters alone, such as the article "a", are no words to begin with."""
