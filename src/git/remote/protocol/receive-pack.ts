import { SluiceError } from '../../../foundation/sluice-error.ts';
import { cleanText } from '../../../foundation/text/clean-text.ts';
import { type RefUpdate, ZERO_OID } from '../../git-repository.ts';
import type { PushRejection } from '../../refs/push-conflict.ts';
import { expectedValue, newValue } from '../../refs/ref-updates.ts';
import type { Capabilities } from './advertisement.ts';
import { FLUSH, type Packet, PktLineParser, pktLine, textOf } from './pkt-line.ts';
import { ProtocolError, throwOnErrorLine } from './protocol-error.ts';
import { SideBand } from './side-band.ts';

/** Capabilities that a server needs for an atomic push with a report. */
const NEEDED = ['atomic', 'report-status'] as const;
const USED = ['side-band-64k', 'quiet'] as const;
const MAX_OPTIONS = 100;
const MAX_OPTION_CHARACTERS = 1000;
const MAX_REPORT_BYTES = 16 * 1024 * 1024;

export interface PushReport {
  /** `ok`, or why the pack was not taken. */
  readonly unpack: string;
  /** The refs that did not change, with the server's reason. */
  readonly rejections: readonly PushRejection[];
  /** The output of the server and its hooks. */
  readonly serverOutput: string;
}

/** Describes the capabilities that a server lacks for an atomic push; undefined if none. */
export function missingPushCapabilities(offered: Capabilities): string | undefined {
  const lacking = NEEDED.filter((name) => !offered.has(name));
  return lacking.length === 0 ? undefined : `the server does not offer ${lacking.join(' and ')}`;
}

/**
 * Throws Unsupported for push options if the server accepts none, and InvalidInput for options that the protocol cannot
 * transport.
 */
export function checkPushOptions(url: string, options: readonly string[], offered: Capabilities): void {
  if (options.length === 0) return;
  if (
    options.length > MAX_OPTIONS ||
    options.some((option) => option.length > MAX_OPTION_CHARACTERS || /[\0\r\n]/.test(option))
  )
    throw new SluiceError(
      'InvalidInput',
      `a push takes at most ${MAX_OPTIONS} options, each of one line with at most ${MAX_OPTION_CHARACTERS} characters`,
    );
  if (!offered.has('push-options'))
    throw new SluiceError('Unsupported', `remote ${url} does not accept push options: remove them`);
}

/** True if a pack follows the commands: always, unless refs are only removed. */
export function needsPack(updates: readonly RefUpdate[]): boolean {
  return updates.some(({ type }) => type !== 'delete');
}

/**
 * The commands and checked options of one atomic push, up to the pack. Each command names the value that the ref must have; a
 * verification is a command that leaves it. Verifying that a ref is absent cannot be expressed.
 */
export function encodePush(updates: readonly RefUpdate[], options: readonly string[], offered: Capabilities): Buffer {
  const wanted = [
    ...NEEDED,
    ...USED.filter((name) => offered.has(name)),
    ...(options.length > 0 ? ['push-options'] : []),
    ...(offered.has('object-format') ? ['object-format=sha1'] : []),
    ...(offered.has('agent') ? ['agent=sluice'] : []),
  ].join(' ');
  const commands = updates.map((update, index) => {
    const command = `${expectedValue(update) ?? ZERO_OID} ${newValue(update) ?? ZERO_OID} ${update.ref}`;
    return pktLine(index === 0 ? `${command}\0 ${wanted}` : command);
  });
  const listed = options.length > 0 ? [...options.map(pktLine), FLUSH] : [];
  return Buffer.concat([...commands, FLUSH, ...listed]);
}

/** Reads the report about a push. Throws ProtocolError unless it is complete. */
export async function readReport(
  pieces: AsyncIterable<Uint8Array>,
  updates: readonly RefUpdate[],
  offered: Capabilities,
): Promise<PushReport> {
  const outer = new PktLineParser();
  const inner = offered.has('side-band-64k') ? new PktLineParser() : undefined;
  const band = new SideBand();
  const lines: string[] = [];
  let size = 0;
  const take = (packet: Packet) => {
    if (typeof packet !== 'string') lines.push(textOf(packet));
  };
  for await (const piece of pieces) {
    size += piece.length;
    if (size > MAX_REPORT_BYTES) throw new ProtocolError('its report does not end');
    for (const packet of outer.push(piece)) {
      if (inner === undefined || typeof packet === 'string') {
        take(packet);
        continue;
      }
      throwOnErrorLine(textOf(packet));
      const data = band.dataOf(packet);
      if (data !== undefined) for (const line of inner.push(data)) take(line);
    }
  }
  outer.end();
  inner?.end();
  return parseReport(lines, updates, band.words);
}

function parseReport(lines: readonly string[], updates: readonly RefUpdate[], serverOutput: string): PushReport {
  const [first, ...rest] = lines;
  if (first?.startsWith('unpack ') !== true) throw new ProtocolError('it sent no report about the push');
  const open = new Set(updates.map(({ ref }) => ref));
  const rejections: PushRejection[] = [];
  for (const line of rest) {
    const [, verdict, ref = '', reason = ''] = /^(ok|ng) (\S+)(?: (.*))?$/s.exec(line) ?? [];
    if (verdict === undefined || !open.delete(ref))
      throw new ProtocolError('its report names a ref that was not pushed');
    if (verdict === 'ng') rejections.push({ ref, reason: cleanText(reason) });
  }
  if (open.size > 0) throw new ProtocolError(`its report does not mention ${[...open][0]}`);
  return { unpack: cleanText(first.slice('unpack '.length)), rejections, serverOutput };
}
