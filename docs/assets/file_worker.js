// The search of the site runs in a worker, which browsers refuse to pages that are opened as files.
// There, run its script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.loaded = new Promise((resolve) => {
        const attach = () => {
          document.body.append(frame);
          this.inner = frame.contentWindow;
          this.inner.postMessage = (data) => {
            const event = new MessageEvent("message", { data });
            this.dispatchEvent(event);
            if (this.onmessage) this.onmessage(event);
          };
          const script = this.inner.document.createElement("script");
          script.src = url;
          script.onload = resolve;
          this.inner.document.body.append(script);
        };
        if (document.body) attach();
        else document.addEventListener("DOMContentLoaded", attach);
      });
    }

    postMessage(data) {
      this.loaded.then(() => {
        this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
      });
    }

    terminate() {}
  };
}
