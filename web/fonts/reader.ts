/** Bytes read one after the other, with the two ways in which WOFF2 writes small numbers short. */
export class Reader {
  readonly bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  take(length: number): Buffer {
    if (this.at + length > this.bytes.length) throw new Error("a font that ends too early");
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  byte(): number {
    return this.take(1).readUInt8();
  }

  uint16(): number {
    return this.take(2).readUInt16BE();
  }

  /** Seven bits a byte, the highest first; the eighth says that there are more. */
  base128(): number {
    let value = 0;
    for (let i = 0; i < 5; i++) {
      const byte = this.byte();
      value = value * 128 + (byte & 127);
      if (byte < 128) return value;
    }
    throw new Error("a number that does not end");
  }

  /** One byte up to 252, else two or three. */
  short255(): number {
    const first = this.byte();
    if (first === 253) return this.uint16();
    if (first === 254) return this.byte() + 506;
    if (first === 255) return this.byte() + 253;
    return first;
  }
}

export function base128(value: number): Buffer {
  const bytes = [value & 127];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 127) | 128);
  return Buffer.from(bytes);
}
