import { trimEndOf } from '../../foundation/text/trim-characters.ts';
import { unpack, wantString } from '../library/arguments.ts';
import { fail, type Machine } from '../machine/machine.ts';
import type { NamedArguments } from '../values/callable.ts';
import type { Value } from '../values/value.ts';
import { moduleOf } from './module.ts';

const ENCODINGS = ['standard', 'standard_raw', 'url', 'url_raw'];

export const BASE64 = moduleOf('base64', {
  encode(machine, args, named) {
    const [data, encoding] = read(machine, 'encode', args, named);
    const encoded = Buffer.from(data).toString(encoding.startsWith('url') ? 'base64url' : 'base64');
    if (encoding === 'standard_raw') return trimEndOf(encoded, '=');
    return encoding === 'url' ? encoded.padEnd(Math.ceil(encoded.length / 4) * 4, '=') : encoded;
  },
  decode(machine, args, named) {
    const [data, encoding] = read(machine, 'decode', args, named);
    const [, body = '', padding = ''] = /^([^=]*)(=*)$/.exec(data.replace(/[\r\n]/g, '')) ?? [];
    const alphabet = encoding.startsWith('url') ? /^[-\w]*$/ : /^[+/0-9A-Za-z]*$/;
    const padded = encoding.endsWith('raw') ? 0 : (4 - (body.length % 4)) % 4;
    if (!alphabet.test(body) || padding.length !== padded || body.length % 4 === 1 || (body === '' && data !== ''))
      fail('decode: illegal base64 data');
    return Buffer.from(body, 'base64').toString();
  },
});

function read(
  machine: Machine,
  name: string,
  args: readonly Value[],
  named: NamedArguments | undefined,
): [data: string, encoding: string] {
  const [data = null, encoding = 'standard'] = unpack(name, args, named, ['data', 'encoding?']);
  const text = wantString(name, data, 'data');
  const format = wantString(name, encoding, 'encoding') || 'standard';
  if (!ENCODINGS.includes(format)) fail(`unsupported encoding format: ${format.slice(0, 100)}`);
  machine.text(text.length * 2);
  return [text, format];
}
