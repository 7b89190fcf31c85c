// What is in view of a conversation: the question that was asked goes to the top, and the answer is followed while it
// is written, until the reader scrolls. An answer that comes faster than anyone reads stays where it begins.

const [GAP, READABLE] = [12, 1_500]; // pixels; milliseconds that an answer has to last to be followed

export class Follower {
  #box; #scroller; #covered; #isFollowed = false; #since = 0; #top = 0;

  /** `box` holds the messages, `scroller()` scrolls it, and the last `covered()` pixels of that are behind the field. */
  constructor(box, scroller, covered = () => 0) {
    [this.#box, this.#scroller, this.#covered] = [box, scroller, covered];
  }

  /** The scroller has scrolled: upwards by the reader alone. */
  noteScroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = this.#scroller();
    if (scrollTop < this.#top - GAP) this.#isFollowed = false;
    else if (scrollTop + clientHeight > scrollHeight - GAP) this.#isFollowed = true;
    this.#top = scrollTop;
  };

  /** Bring a question to the top, with room for its answer below. */
  begin(asked) {
    const [scroller, box] = [this.#scroller(), this.#box];
    const topOf = (one) => one.getBoundingClientRect().top - this.#edge();
    const above = topOf(asked) - topOf(box) - GAP;
    box.style.minHeight = `${above + 2 * scroller.clientHeight}px`; // so that there is a scrolled height to measure
    const below = scroller.scrollHeight - scroller.scrollTop - topOf(box) - box.offsetHeight;
    box.style.minHeight = `${Math.max(0, above + scroller.clientHeight - below)}px`;
    scroller.scrollTop += topOf(asked) - GAP;
    [this.#top, this.#since, this.#isFollowed] = [scroller.scrollTop, 0, true];
  }

  /** Keep the end of a growing answer in view. */
  follow(answer) {
    this.#since ||= performance.now();
    const scroller = this.#scroller();
    const hidden = answer.getBoundingClientRect().bottom - this.#edge() + GAP - scroller.clientHeight + this.#covered();
    if (!this.#isFollowed || hidden <= 0 || performance.now() - this.#since < READABLE) return;
    scroller.scrollTop += hidden;
    this.#top = scroller.scrollTop;
  }

  #edge() {
    const scroller = this.#scroller();
    return scroller === document.scrollingElement ? 0 : scroller.getBoundingClientRect().top;
  }
}
