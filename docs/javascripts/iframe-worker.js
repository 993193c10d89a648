// Browsers start no workers from disk. Search runs in one, so on file: pages a hidden frame stands in for it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => {
        this.frame.addEventListener("load", resolve, { once: true });
      });
      this.frame.srcdoc =
        "<script>postMessage = (data) => parent.postMessage(data, '*');" +
        "importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {" +
        "const script = document.createElement('script'); script.src = url; script.onload = done;" +
        "document.body.append(script); })));</" + "script><body><script src=\"" + url + "\"></" + "script>";
      addEventListener("message", (event) => {
        if (event.source !== this.frame.contentWindow) return;
        const told = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(told);
        if (this.onmessage) this.onmessage(told);
      });
      const attach = () => document.body.append(this.frame);
      if (document.body) attach(); else addEventListener("DOMContentLoaded", attach);
    }
    postMessage(data) {
      // The frame has replaced its own postMessage by one that answers.
      this.ready.then(() => window.postMessage.call(this.frame.contentWindow, data, "*"));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
