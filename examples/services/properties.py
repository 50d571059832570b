"""What must hold for an account."""

from worldline.search import Story, always


@always("a deposit counts once")
def counts_once(story: Story) -> bool:
    said = [note.text.split() for note in story.noted(by="client") if note.text.startswith("deposit")]
    return all(words[1].rstrip(":") == words[3] for words in said)
