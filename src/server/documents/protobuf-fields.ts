/** The few forms of protobuf fields that are written here. A message is the concatenation of its fields. */

/** A message, a string or bytes. */
export function bytesField(number: number, value: Buffer | string): Buffer {
  const body = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([varint(number * 8 + 2), varint(body.length), body]);
}

export function flagField(number: number, value: boolean): Buffer {
  return Buffer.concat([varint(number * 8), varint(value ? 1 : 0)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
