import { isUtf8 } from 'node:buffer';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** How the value of a field is laid out. Groups, which end with a field of their own, nobody writes any more. */
export type WireType = 'varint' | 'fixed64' | 'bytes' | 'fixed32';

const WIRE_TYPES: readonly (WireType | undefined)[] = ['varint', 'fixed64', 'bytes', undefined, undefined, 'fixed32'];
const MAX_VARINT_BYTES = 10;
const MAX_FIELD_NUMBER = 2 ** 29 - 1;

/**
 * Goes through one message of the protobuf wire format from its start. Everything is checked against the end of the message;
 * what does not fit is a BadRequest. Errors tell places, never values.
 */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** The number and the layout of the next field. */
  tag(): { readonly number: number; readonly wireType: WireType } {
    const tag = Number(this.varint());
    const number = Math.floor(tag / 8);
    const wireType = WIRE_TYPES[tag % 8];
    if (number < 1 || number > MAX_FIELD_NUMBER) throw malformed(`field number ${number} is out of range`);
    if (wireType === undefined) throw malformed(`field ${number} has the unknown wire type ${tag % 8}`);
    return { number, wireType };
  }

  /** An unsigned number of at most 64 bits. */
  varint(): bigint {
    // Nearly all numbers fit into four bytes, and those need no big integers.
    let small = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte();
      small |= (byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt(small);
    }
    let value = BigInt(small);
    for (let index = 4; index < MAX_VARINT_BYTES; index += 1) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw malformed(`a number is longer than ${MAX_VARINT_BYTES} bytes`);
  }

  /** A part that tells its length; a view, not a copy. */
  bytes(): Buffer {
    const length = this.varint();
    if (length > this.#bytes.length - this.#at) throw malformed('a field is longer than what is left');
    const start = this.#at;
    this.#at += Number(length);
    return this.#bytes.subarray(start, this.#at);
  }

  text(): string {
    const bytes = this.bytes();
    if (!isUtf8(bytes)) throw malformed('a text is not valid UTF-8');
    return bytes.toString('utf8');
  }

  /** Passes over the value of a field that nobody asks for. */
  skip(wireType: WireType): void {
    if (wireType === 'varint') this.varint();
    else if (wireType === 'bytes') this.bytes();
    else this.#advance(wireType === 'fixed64' ? 8 : 4);
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw malformed('it ends within a field');
    this.#at += 1;
    return byte;
  }

  #advance(length: number): void {
    if (length > this.#bytes.length - this.#at) throw malformed('it ends within a field');
    this.#at += length;
  }
}

/** What is wrong with a body; the text must not hold values of it. */
export function malformed(problem: string): SluiceError {
  return new SluiceError('BadRequest', `the body is not valid protobuf: ${problem}`);
}
