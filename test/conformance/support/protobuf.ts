/** A ConfigMap in the protobuf form of Kubernetes, written by hand: no part of the server has a hand in it. */
export function configMapProtobuf(name: string, data: Readonly<Record<string, string>>): Buffer {
  const metadata = field(1, text(1, name));
  const entries = Object.entries(data).map(([key, value]) => field(2, Buffer.concat([text(1, key), text(2, value)])));
  const typeMeta = Buffer.concat([text(1, 'v1'), text(2, 'ConfigMap')]);
  const unknown = [field(1, typeMeta), field(2, Buffer.concat([metadata, ...entries])), text(3, ''), text(4, '')];
  return Buffer.concat([Buffer.from('k8s\0'), ...unknown]);
}

function text(number: number, value: string): Buffer {
  return field(number, Buffer.from(value));
}

/** A field with bytes of a given length. */
function field(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
