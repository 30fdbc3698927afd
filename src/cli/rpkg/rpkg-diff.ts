import type { z } from 'zod';
import { diffBases } from '../../package/api/storages/diff-base.ts';
import { filesInMemory } from '../../package/model/diff/compared-files.ts';
import { fileChanges } from '../../package/model/diff/file-diff.ts';
import { diffSchema } from '../../package/model/revision/revision-readings.ts';
import type { Access } from '../access/access.ts';
import { findRevision, revisionsOf } from '../access/find-revision.ts';
import { inPackages } from '../access/in-packages.ts';
import { readFiles } from '../access/package-contents.ts';
import { readRevision } from '../access/read-revision.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printPatch } from '../output/print-patch.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import type { Terminal } from '../output/terminal.ts';

export interface DiffOptions extends PlaceOptions {
  readonly output: 'patch' | 'json' | 'yaml';
  readonly nameOnly?: boolean;
}

/** Files without their patch that a warning names. */
const MAX_NAMED_FILES = 10;

type Comparison = z.output<typeof diffSchema>;

/** `sluice rpkg diff`. Exit code 1 if there are differences, as in diff. */
export function rpkgDiff(
  name: string,
  other: string,
  options: DiffOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const comparison = access.isSluice
      ? await readRevision(access, name, 'diff', diffSchema, { with: await expectBase(access, other) })
      : await compare(access, name, other);
    const { files } = comparison;
    if (options.output !== 'patch') {
      const shown = options.nameOnly === true ? files.map(({ patch: _patch, ...file }) => file) : files;
      const document = { ...comparison, files: shown };
      terminal.out.write(options.output === 'json' ? toJson(document) : toYaml(document));
    } else if (options.nameOnly === true) for (const { path } of files) terminal.line(printable(path));
    else for (const { patch } of files) printPatch(terminal, patch);
    if (options.nameOnly !== true || comparison.omittedFiles !== undefined) warnOfOmissions(terminal, comparison);
    return files.length === 0 ? 0 : 1;
  });
}

/** The word for the other revision; NotFound with the names that are near if it is a name that no revision has. */
async function expectBase(access: Access, other: string): Promise<string> {
  if (other === 'source' || other === 'latest') return other;
  return (await findRevision(access, other)).metadata.name;
}

/** The same by the files that every server of package revisions shows. */
async function compare(access: Access, name: string, other: string): Promise<Comparison> {
  const revision = await findRevision(access, name);
  const { packageName, repository } = revision.spec;
  const ofPackage = (await revisionsOf(access, repository)).filter(({ spec }) => spec.packageName === packageName);
  const [base] = diffBases(revision, ofPackage, other);
  const before =
    base === undefined ? new Map<string, Buffer>() : (await readFiles(access, await findRevision(access, base))).files;
  const { files: after } = await readFiles(access, revision);
  const changes = await fileChanges(filesInMemory(before), filesInMemory(after));
  return { ...(base === undefined ? {} : { from: base }), to: revision.metadata.name, ...changes };
}

/** On stderr, so that the patch on stdout stays one. */
function warnOfOmissions(terminal: Terminal, { from, to, files, omittedFiles = 0, truncated }: Comparison): void {
  if (truncated !== true) return;
  const paths = files.filter((file) => file.truncated).map(({ path }) => path);
  const named = paths.slice(0, MAX_NAMED_FILES);
  const others = paths.length - named.length + omittedFiles;
  const what = [...named, ...(others > 0 ? [`${others} more files`] : [])].join(', ');
  const commands = [to, from].flatMap((name) => (name === undefined ? [] : [`"sluice rpkg pull ${name} <folder>"`]));
  const label = terminal.style('yellow', 'warning:', terminal.err);
  terminal.note(
    `${label} ${printable(`the difference is too large: omitted ${what}; for the whole files: ${commands.join(' and ')}`)}`,
  );
}
