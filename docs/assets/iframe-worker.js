// Browsers start no workers from files, and the search runs in one. When the site is opened without a
// server, run the worker's script in a hidden frame instead. Messages are copies, as those of a worker are.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>search</title>";
      this.frame.onload = () => {
        const inner = this.frame.contentWindow;
        inner.postMessage = (message) => {
          const data = structuredClone(message);
          setTimeout(() => this.onmessage && this.onmessage({ data }));
        };
        const script = inner.document.createElement("script");
        script.src = url;
        script.onerror = (event) => this.onerror && this.onerror(event);
        script.onload = () => {
          const before = this.waiting;
          this.waiting = null;
          before.forEach((data) => this.postMessage(data));
        };
        inner.document.head.append(script);
      };
      document.body.append(this.frame);
    }

    postMessage(message) {
      const data = structuredClone(message);
      if (this.waiting) this.waiting.push(data);
      else setTimeout(() => this.frame.contentWindow && this.frame.contentWindow.onmessage({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
