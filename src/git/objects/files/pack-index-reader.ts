import { SluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError } from '../../errors.ts';

const SIGNATURE_V2 = 'ff744f6300000002';
const IDS_AT = 8 + 256 * 4;
const OID_BYTES = 20;
const CRC_BYTES = 4;
const OFFSET_BYTES = 4;
const CHECKSUMS_BYTES = 40;
/** Marks an offset that is in a table for packs from 2 GiB on. */
const LARGE = 0x8000_0000;

/** An index of version 2: where in its pack an object begins. */
export class PackIndex {
  readonly #bytes: Buffer;
  readonly #count: number;

  /** Throws DamageError for any other data. */
  constructor(bytes: Buffer, path: string) {
    const count = bytes.length < IDS_AT ? 0 : bytes.readUInt32BE(IDS_AT - 4);
    const least = IDS_AT + count * (OID_BYTES + CRC_BYTES + OFFSET_BYTES) + CHECKSUMS_BYTES;
    if (bytes.toString('hex', 0, 8) !== SIGNATURE_V2 || bytes.length < least)
      throw new DamageError(
        `the pack index ${path} cannot be read: it is damaged, or not of version 2. Remove it and run "git index-pack" for its pack`,
      );
    this.#bytes = bytes;
    this.#count = count;
  }

  find(oid: Buffer): number | undefined {
    const first = oid[0] ?? 0;
    let low = first === 0 ? 0 : this.#bytes.readUInt32BE(8 + (first - 1) * 4);
    let high = Math.min(this.#bytes.readUInt32BE(8 + first * 4), this.#count);
    while (low < high) {
      const middle = (low + high) >> 1;
      const at = IDS_AT + middle * OID_BYTES;
      const order = oid.compare(this.#bytes, at, at + OID_BYTES);
      if (order === 0) return this.#offset(middle);
      if (order < 0) high = middle;
      else low = middle + 1;
    }
    return undefined;
  }

  #offset(position: number): number {
    const table = IDS_AT + this.#count * (OID_BYTES + CRC_BYTES);
    const offset = this.#bytes.readUInt32BE(table + position * OFFSET_BYTES);
    if (offset >= LARGE)
      throw new SluiceError(
        'LimitExceeded',
        'cannot read a pack of 2 GiB or more without git: install git 2.39 or later',
      );
    return offset;
  }
}
