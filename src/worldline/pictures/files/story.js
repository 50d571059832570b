// A failure as a story: under what circumstances, and then step by step until what failed.

class Story {
  constructor(place, {circumstances, steps, left_out: before}) {
    this.place = place; this.shown = "";
    this.steps = steps;
    const [general, ...decides] = circumstances;
    const row = ({at, who, text, matters, isFailure}, number) => make("li", {}, make("button",
      {type: "button", class: isFailure ? "failure" : matters ? "matters" : null, onclick: () => this.go(number)}, make("time", {}, timeText(at, nice(Math.max(1, steps.at(-1).at / 1e4)))), make("span", {}, make("b", {}, who || "(outside)"), ` ${text.replace(/^->/, "→").replace(/^<-/, "←")}`)));
    this.row = row; this.list = make("ol", {}, ...steps.map(row));
    place.append(...(general ? [make("p", {}, general)] : []), make("ul", {}, ...decides.map(line => make("li", {}, line.trim()))),
      ...(before ? [make("p", {}, `… ${before.toLocaleString("en")} steps before that`)] : []), this.list);
    place.hidden = false;
    byId("seek").firstElementChild.hidden = false; byId("seek").value = "step";
    look.step = -1;
    listeners.push(() => this.draw());
  }

  // The failure is the last step, once it is known.
  end() {
    const {failure, failedAt, failedBy} = runs[0].status;
    if (!failure || this.steps.at(-1)?.isFailure) return;
    this.steps.push({at: failedAt ?? runs[0].end, who: failedBy ?? "", text: failure.slice(failedAt === null || failedAt === undefined ? 0 : failure.indexOf(": ") + 1).trim(), isFailure: true});
    this.list.append(this.row(this.steps.at(-1), this.steps.length - 1));
    if (look.follow) setWindow(-0.01 * runs[0].end, this.steps.at(-1).at * 1.1);  // The rest is another story.
  }

  go(number) {
    if (!(number >= 0 && number < this.steps.length)) return;
    look.follow = false;
    setNow(this.steps[number].at);
    look.step = number;  // Not only its moment: several steps may be at one.
  }

  // Where the story is: at the step that was chosen, or the last one until the moment.
  draw() {
    this.end();
    if (this.steps[look.step]?.at !== look.now) look.step = lowest(this.steps.length, number => this.steps[number].at > look.now) - 1;
    if (this.shown === `${look.step} ${theme.size}`) return;
    this.shown = `${look.step} ${theme.size}`;
    [...this.list.children].forEach((item, number) => {
      item.firstElementChild.toggleAttribute("aria-current", number === look.step);
      item.firstElementChild.classList.toggle("later", number > look.step);
    });
    const current = this.list.children[look.step];
    if (this.list.contains(document.activeElement)) current?.firstElementChild.focus({preventScroll: true});
    current?.scrollIntoView({block: "center"});
  }
}
