"""What must hold in an election."""

from worldline.search import Story, always, at_end


@always("no term has two leaders")
def one_leader(story: Story) -> bool:
    terms = [note.text.rpartition(" ")[2] for note in story.noted() if " leads " in note.text]
    return len(set(terms)) == len(terms)


@at_end("there is a leader")
def a_leader(story: Story) -> bool:
    return any(" leads " in note.text for note in story.noted())
