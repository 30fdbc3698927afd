import { SluiceError } from '../../foundation/sluice-error.ts';
import { isPublished, type PackageRevision } from '../../package/package-revision.ts';
import type { Session } from '../assembly/session.ts';
import { printable, printableLines } from '../output/printable.ts';
import type { Style, Terminal } from '../output/terminal.ts';
import { unifiedDiff } from '../output/unified-diff.ts';
import type { DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { findRevision, inSession } from './in-session.ts';

export interface DiffOptions extends DataOptions {
  readonly nameOnly?: boolean;
}

type Files = ReadonlyMap<string, Buffer>;

/** `sluice rpkg diff`. Exit code 1 if something differs, as diff does. */
export function rpkgDiff(name: string, other: string, options: DiffOptions, invocation: Invocation): Promise<Outcome> {
  return inSession(options, invocation, async (session) => {
    const { terminal } = invocation;
    const revision = await findRevision(session, name);
    const base = await baseOf(session, revision, other);
    const before: Files = base === undefined ? new Map() : (await session.store.content(base.name)).files;
    const after: Files = (await session.store.content(revision.name)).files;
    const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
    const changed = paths.filter((path) => !same(before.get(path), after.get(path)));
    for (const path of changed) {
      if (options.nameOnly === true) terminal.line(printable(path));
      else write(terminal, fileDiff(path, before.get(path), after.get(path)));
    }
    return changed.length === 0 ? 0 : 1;
  });
}

/** What to compare with; undefined for a package that has nothing before it. */
async function baseOf(
  session: Session,
  revision: PackageRevision,
  other: string,
): Promise<PackageRevision | undefined> {
  if (other !== 'source' && other !== 'latest') return findRevision(session, other);
  const { repository, package: path } = revision.key;
  const published = session.store
    .list({ repository, package: path })
    .filter((candidate) => isPublished(candidate) && candidate.revision > 0 && candidate.name !== revision.name)
    .sort((a, b) => b.revision - a.revision);
  if (other === 'latest') {
    const [latest] = published;
    if (latest === undefined)
      throw new SluiceError('NotFound', `${path} has no other published revision to compare with`);
    return latest;
  }
  const source = revision.record?.source?.name;
  const named = source === undefined ? undefined : session.store.find(source);
  return named ?? published.find((candidate) => revision.revision <= 0 || candidate.revision < revision.revision);
}

function same(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return before === undefined || after === undefined ? before === after : before.equals(after);
}

/** The difference of one file in the form that `git apply` takes. */
export function fileDiff(path: string, before: Buffer | undefined, after: Buffer | undefined): string {
  const [left, right] = [quoted(`a/${path}`), quoted(`b/${path}`)];
  const lines = [`diff --git ${left} ${right}`];
  if (before === undefined) lines.push('new file mode 100644');
  if (after === undefined) lines.push('deleted file mode 100644');
  const header = `${lines.join('\n')}\n`;
  if (before?.includes(0) || after?.includes(0)) return `${header}Binary files ${left} and ${right} differ\n`;
  const [old, next] = [before?.toString('utf8') ?? '', after?.toString('utf8') ?? ''];
  if (old === next) return header;
  return `${header}${unifiedDiff(old, next, {
    before: before === undefined ? undefined : left,
    after: after === undefined ? undefined : right,
  })}`;
}

/** A path as Git writes it in a patch: in quotes and with octal bytes if it has characters that could mislead. */
function quoted(path: string): string {
  if (/^[\x21\x23-\x5b\x5d-\x7e ]+$/.test(path) && printable(path) === path) return path;
  const bytes = [...Buffer.from(path)].map((byte) =>
    byte > 0x1f && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
      ? String.fromCharCode(byte)
      : `\\${byte.toString(8).padStart(3, '0')}`,
  );
  return `"${bytes.join('')}"`;
}

function write(terminal: Terminal, text: string): void {
  // A patch for a program keeps its bytes; a terminal is not steered by what stands in a file.
  const shown = terminal.out.isTTY === true ? printableLines(text) : text;
  terminal.out.write(
    shown.replace(/^.*$/gm, (line) => {
      const style = styleOf(line);
      return style === undefined ? line : terminal.style(style, line);
    }),
  );
}

function styleOf(line: string): Style | undefined {
  if (line.startsWith('+++') || line.startsWith('---') || line.startsWith('diff ')) return 'bold';
  if (line.startsWith('@@')) return 'cyan';
  if (line.startsWith('+')) return 'green';
  return line.startsWith('-') ? 'red' : undefined;
}
