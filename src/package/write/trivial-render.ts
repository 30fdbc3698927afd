import { type Condition, editKptfile, type Kptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import { contentDigest, MAX_FILES } from '../content.ts';
import { CONTENT_INPUT, type PackageInputs, UNKNOWN_INPUTS } from '../inputs.ts';
import { isKptfilePath } from '../merge/package-files.ts';
import type { RevisionRecord } from '../record.ts';
import { giveVerdict } from '../verdict.ts';

/** What kpt writes into the Kptfile of a package whose pipeline came through. */
export const RENDERED: Condition = { type: 'Rendered', status: 'True', reason: 'RenderSuccess' };

/** Rendering is nobody's opinion: whoever asked for the change did not give this condition. */
const RENDERER: RequestContext = { actor: { name: 'controller:render' }, face: 'controller' };

/**
 * The Kptfile of a package after rendering, if the package has no pipeline: then rendering changes nothing but the condition, which
 * is put last unless it is there already: a copy stays as its source is. Undefined if some Kptfile of the package, nested packages included, names functions or cannot be read.
 * `kptfiles` are all of them by path; the package's own is `Kptfile`.
 */
export function renderTrivially(kptfiles: ReadonlyMap<string, Uint8Array>): string | undefined {
  let own: Kptfile | undefined;
  for (const [path, data] of kptfiles) {
    const read = readKptfile(data);
    if (!read.ok || hasPipeline(read.kptfile)) return undefined;
    if (path === 'Kptfile') own = read.kptfile;
  }
  const data = kptfiles.get('Kptfile');
  if (own === undefined || data === undefined) return undefined;
  const text = Buffer.from(data).toString('utf8');
  if (isRendered(own)) return text;
  return editKptfile(text, [
    { op: 'removeCondition', type: RENDERED.type },
    { op: 'setCondition', condition: RENDERED },
  ]);
}

/** Puts down that a package was rendered as it is now. */
export function giveRendered(record: RevisionRecord, inputs: PackageInputs, at: string): RevisionRecord {
  return giveVerdict(record, { ...RENDERED, inputs: [CONTENT_INPUT] }, inputs, RENDERER, at);
}

/**
 * Renders the package at a path of a new root tree, if it has no pipeline. `inputs` is what the condition was given for; without it
 * nothing was rendered.
 */
export async function renderNew(
  git: GitRepository,
  root: Oid,
  path: string,
): Promise<{ readonly root: Oid; readonly inputs?: PackageInputs }> {
  const listed = await git.listFiles(`${root}:${path}`, MAX_FILES);
  const found = listed.filter((entry) => isKptfilePath(entry.path) && entry.mode.startsWith('100'));
  const objects = await git.readObjects(found.map((entry) => entry.oid));
  const kptfiles = new Map(found.map((entry, index) => [entry.path, objects[index]?.data ?? Buffer.alloc(0)]));
  const text = renderTrivially(kptfiles);
  const entries = await git.readTree(`${root}:${path}`);
  if (text === undefined || entries === undefined) return { root };
  const read = readKptfile(text);
  const rendered = await git.editTree(root, new Map([[`${path}/Kptfile`, { data: Buffer.from(text) }]]));
  const content = contentDigest(entries, read.ok ? read.kptfile : undefined);
  return { root: rendered, inputs: { ...UNKNOWN_INPUTS, content } };
}

function hasPipeline({ pipeline }: Kptfile): boolean {
  return (pipeline?.mutators?.length ?? 0) + (pipeline?.validators?.length ?? 0) > 0;
}

/** True if the one condition that speaks of rendering is what rendering would write. Where it stands means nothing. */
function isRendered({ status }: Kptfile): boolean {
  const [found, ...others] = (status?.conditions ?? []).filter(({ type }) => type === RENDERED.type);
  return (
    found !== undefined &&
    others.length === 0 &&
    found.status === RENDERED.status &&
    found.reason === RENDERED.reason &&
    Object.keys(found).length === Object.keys(RENDERED).length
  );
}
