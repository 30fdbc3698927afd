import { SluiceError } from '../../foundation/sluice-error.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { findRevision, repositoryOf, revisionsOf } from '../access/find-revision.ts';
import { inAccess } from '../access/in-access.ts';
import { printable, printableLines } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import type { Style, Terminal } from '../output/terminal.ts';
import { unifiedDiff } from '../output/unified-diff.ts';
import type { Invocation, Outcome, PlaceOptions } from '../program/invocation.ts';

export interface DiffOptions extends PlaceOptions {
  readonly output: 'patch' | 'json' | 'yaml';
  readonly nameOnly?: boolean;
}

/** What `-o json` prints. */
interface StructuredDiff {
  /** The revision that is compared with; absent for a package that has nothing before it. */
  readonly from?: string;
  readonly to: string;
  /** By path. */
  readonly files: readonly {
    readonly path: string;
    readonly change: 'Added' | 'Removed' | 'Modified';
    /** True for a file that is not text. */
    readonly binary?: true;
    /** As `git apply` reads it; absent with --name-only. */
    readonly patch?: string;
  }[];
}

type Revision = Stored<PackageRevision>;
type Files = ReadonlyMap<string, Buffer>;

/** `sluice rpkg diff`. Exit code 1 if something differs, as diff does. */
export function rpkgDiff(name: string, other: string, options: DiffOptions, invocation: Invocation): Promise<Outcome> {
  return inAccess(options, invocation, async (access) => {
    const { terminal } = invocation;
    const revision = await findRevision(access, name);
    const base = await baseOf(access, revision, other);
    const before: Files = base === undefined ? new Map() : (await access.contents.read(base)).files;
    const after: Files = (await access.contents.read(revision)).files;
    const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
    const changed = paths.filter((path) => !same(before.get(path), after.get(path)));
    if (options.output !== 'patch') {
      const names = { ...(base === undefined ? {} : { from: base.metadata.name }), to: revision.metadata.name };
      const files = changed.map((path) =>
        structured(path, before.get(path), after.get(path), options.nameOnly === true),
      );
      const document: StructuredDiff = { ...names, files };
      terminal.out.write(options.output === 'json' ? toJson(document) : toYaml(document));
      return changed.length === 0 ? 0 : 1;
    }
    for (const path of changed) {
      if (options.nameOnly === true) terminal.line(printable(path));
      else write(terminal, fileDiff(path, before.get(path), after.get(path)));
    }
    return changed.length === 0 ? 0 : 1;
  });
}

/** What to compare with; undefined for a package that has nothing before it. */
async function baseOf(access: Access, revision: Revision, other: string): Promise<Revision | undefined> {
  if (other !== 'source' && other !== 'latest') return findRevision(access, other);
  const { repository, packageName } = revision.spec;
  const published = (await revisionsOf(access, repository))
    .filter(({ metadata, spec }) => spec.packageName === packageName && metadata.name !== revision.metadata.name)
    .filter(({ spec }) => numberOf(spec) > 0)
    .sort((a, b) => numberOf(b.spec) - numberOf(a.spec));
  if (other === 'latest') {
    const [latest] = published;
    if (latest === undefined)
      throw new SluiceError('NotFound', `${packageName} has no other published revision to compare with`);
    return latest;
  }
  const number = numberOf(revision.spec);
  return (
    (await sourceOf(access, revision)) ??
    published.find((candidate) => number <= 0 || numberOf(candidate.spec) < number)
  );
}

/** The revision that this one was made from: of a copy its source, of an upgrade the local one. */
async function sourceOf(
  { client, namespace, repositories }: Access,
  { spec }: Revision,
): Promise<Revision | undefined> {
  const [task] = spec.tasks ?? [];
  const name = (task?.edit?.sourceRef ?? task?.upgrade?.localPackageRevisionRef)?.name;
  if (name === undefined) return undefined;
  await repositories.open(repositoryOf(name));
  return client.find(packageRevisionKind, { namespace, name });
}

function numberOf({ revision = 0 }: PackageRevision['spec']): number {
  return revision;
}

function same(before: Buffer | undefined, after: Buffer | undefined): boolean {
  return before === undefined || after === undefined ? before === after : before.equals(after);
}

function structured(
  path: string,
  before: Buffer | undefined,
  after: Buffer | undefined,
  nameOnly: boolean,
): StructuredDiff['files'][number] {
  const isBinary = before?.includes(0) === true || after?.includes(0) === true;
  return {
    path,
    change: before === undefined ? 'Added' : after === undefined ? 'Removed' : 'Modified',
    ...(isBinary ? { binary: true } : {}),
    ...(nameOnly ? {} : { patch: fileDiff(path, before, after) }),
  };
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
