import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Ref } from '../../git-repository.ts';
import { isOid } from '../../objects/object-id.ts';
import { PktLineParser, textOf } from './pkt-line.ts';
import { ProtocolError, throwOnErrorLine } from './protocol-error.ts';

/** The capabilities of a server: names, with a value behind `=` or an empty one. */
export type Capabilities = ReadonlyMap<string, string>;

const MAX_ADVERTISEMENT_BYTES = 64 * 1024;
const MAX_DISCARDED_BYTES = 256 * 1024 * 1024;

/** Reads what upload-pack advertises; undefined if it does not support version 2 of the protocol. */
export async function readUploadCapabilities(pieces: AsyncIterable<Uint8Array>): Promise<Capabilities | undefined> {
  const lines: string[] = [];
  for await (const text of linesOf(pieces)) {
    if (lines.length === 0 && text !== 'version 2') return undefined;
    lines.push(text);
  }
  if (lines.length === 0) throw new ProtocolError('its advertisement is empty');
  return capabilities(lines.slice(1));
}

/** Reads what receive-pack advertises with the first ref, and leaves the other refs unread unless all is to be read. */
export async function readReceiveCapabilities(
  pieces: AsyncIterable<Uint8Array>,
  toTheEnd: boolean,
): Promise<Capabilities> {
  const parser = new PktLineParser();
  let found: Capabilities | undefined;
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > MAX_DISCARDED_BYTES) throw new ProtocolError('its list of refs does not end');
    if (found !== undefined) continue;
    for (const packet of parser.push(piece)) {
      const text = typeof packet === 'string' ? '' : textOf(packet);
      const nul = text.indexOf('\0');
      throwOnErrorLine(text);
      if (nul < 0) continue;
      found = capabilities(text.slice(nul + 1).split(' '));
      break;
    }
    if (found !== undefined && !toTheEnd) return found;
    if (found === undefined && size > MAX_ADVERTISEMENT_BYTES) break;
  }
  if (found === undefined) throw new ProtocolError('its advertisement names no capabilities');
  return found;
}

/** The refs that receive-pack advertises. */
export function advertisedRefs(advertisement: Uint8Array): Ref[] {
  const refs = new PktLineParser().push(advertisement).map((packet) => {
    const line = typeof packet === 'string' ? '' : textOf(packet).split('\0', 1)[0];
    return line === '' || line === undefined ? undefined : refOf(line);
  });
  return refs.filter((ref) => ref !== undefined);
}

/** Throws Unsupported for a repository whose object ids are not SHA-1. */
export function checkObjectFormat(url: string, offered: Capabilities): void {
  const format = offered.get('object-format') ?? 'sha1';
  if (format === 'sha1') return;
  throw new SluiceError(
    'Unsupported',
    `remote ${url} has object ids of the kind ${JSON.stringify(format.slice(0, 40))}; only SHA-1 repositories can be used`,
  );
}

/** The lines up to the flush behind them, without those that name the service. */
async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const parser = new PktLineParser();
  let size = 0;
  let inService = false;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > MAX_ADVERTISEMENT_BYTES) throw new ProtocolError('its advertisement is too long');
    for (const packet of parser.push(piece)) {
      if (packet === 'flush') {
        if (!inService) return;
        inService = false;
      } else if (typeof packet !== 'string') {
        const text = textOf(packet);
        throwOnErrorLine(text);
        if (text.startsWith('# service=')) inService = true;
        else yield text;
      }
    }
  }
  parser.end();
}

function capabilities(words: readonly string[]): Capabilities {
  const found = new Map<string, string>();
  for (const word of words) {
    const equals = word.indexOf('=');
    if (word !== '') found.set(equals < 0 ? word : word.slice(0, equals), equals < 0 ? '' : word.slice(equals + 1));
  }
  return found;
}

const OID_LENGTH = 40;

/** `<id> <name>`, and attributes that were not requested; undefined for what is no ref, as HEAD. */
export function refOf(line: string): Ref | undefined {
  throwOnErrorLine(line);
  const end = line.indexOf(' ', OID_LENGTH + 1);
  const name = line.slice(OID_LENGTH + 1, end < 0 ? undefined : end);
  const oid = line.slice(0, OID_LENGTH);
  if (line.startsWith('unborn ')) return undefined;
  if (!isOid(oid) || line[OID_LENGTH] !== ' ') throw new ProtocolError('its list of refs has a line that is no ref');
  return name.startsWith('refs/') ? { name, oid } : undefined;
}
