import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

/**
 * Reads one message of the protobuf wire format. The library checks every length against the end of the message; a violation is a BadRequest
 * here. Errors name positions, never values.
 */
export class WireReader {
  readonly #reader: BinaryReader;

  constructor(bytes: Uint8Array) {
    this.#reader = new BinaryReader(bytes);
  }

  get atEnd(): boolean {
    return this.#reader.pos >= this.#reader.len;
  }

  /** The number and the layout of the next field. Groups, which no current encoder writes, are refused: they nest without a length. */
  tag(): { readonly number: number; readonly wireType: WireType } {
    const [number, wireType] = checked(() => this.#reader.tag());
    if (wireType === WireType.StartGroup || wireType === WireType.EndGroup)
      throw malformed(`field ${number} has the unknown wire type ${wireType}`);
    return { number, wireType };
  }

  flag(): boolean {
    return checked(() => this.#reader.bool());
  }

  int32(): number {
    return checked(() => this.#reader.int32());
  }

  /** As exact as JSON is. */
  int64(): number {
    return Number(checked(() => this.#reader.int64()));
  }

  /** A part that states its length; a view, not a copy. */
  bytes(): Uint8Array {
    return checked(() => this.#reader.bytes());
  }

  text(): string {
    try {
      return this.#reader.string(true);
    } catch (error) {
      // TextDecoder throws a TypeError.
      throw malformed(error instanceof TypeError ? 'a text is not valid UTF-8' : messageOf(error));
    }
  }

  /** Skips the value of an unknown field. */
  skip(wireType: WireType): void {
    checked(() => this.#reader.skip(wireType));
  }
}

/** The library throws plain errors, so that only calls of the library may run in here. */
function checked<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw malformed(messageOf(error));
  }
}

/** The error of an invalid body; its text must not contain values of the body. */
export function malformed(problem: string): SluiceError {
  return new SluiceError('BadRequest', `the body is not valid protobuf: ${problem}`);
}
