/** Server-sent events out of bytes: the same for every way in which the network cuts the bytes, and none for half an event. */

export interface SseEvent {
  readonly event: string;
  readonly data: string;
  /** The last id that was given, by this event or by one before it. */
  readonly id: string;
}

export interface SseParser {
  /** The next bytes. An event is told once its blank line is here; a frame that is cut off is told never. */
  push(bytes: Uint8Array): void;
}

export interface SseSink {
  onEvent(event: SseEvent): void;
  onComment?(): void;
  onRetry?(ms: number): void;
}

export function createParser(sink: SseSink): SseParser {
  // It keeps half a character until the other half is here, and takes away a byte order mark.
  const decoder = new TextDecoder("utf-8");
  let rest = "";
  /** The text ended in a carriage return: a line feed that comes first next belongs to it. */
  let endedInReturn = false;
  let event = "";
  let data: string[] = [];
  let id = "";

  const dispatch = (): void => {
    if (data.length > 0) sink.onEvent({ event: event || "message", data: data.join("\n"), id });
    event = "";
    data = [];
  };
  const field = (name: string, value: string): void => {
    if (name === "data") data.push(value);
    else if (name === "event") event = value;
    else if (name === "id") id = value.includes("\0") ? id : value;
    else if (name === "retry" && /^\d+$/.test(value)) sink.onRetry?.(Number(value));
  };
  const line = (text: string): void => {
    const colon = text.indexOf(":");
    if (text === "") dispatch();
    else if (colon === 0) sink.onComment?.();
    else if (colon < 0) field(text, "");
    else field(text.slice(0, colon), text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1));
  };

  return {
    push(bytes) {
      let text = decoder.decode(bytes, { stream: true });
      if (text === "") return;
      if (endedInReturn && text[0] === "\n") text = text.slice(1);
      endedInReturn = text === "" ? false : text.endsWith("\r");
      // Only what is new is searched: a long line that comes in many pieces is not read again with each of them.
      let from = 0;
      for (let at = nextEnd(text, 0); at >= 0; at = nextEnd(text, from)) {
        const whole = rest + text.slice(from, at);
        rest = "";
        from = at + (text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1);
        line(whole);
      }
      rest += text.slice(from);
    },
  };
}

function nextEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10 || code === 13) return at;
  }
  return -1;
}
