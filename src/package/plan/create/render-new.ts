import { readKptfile } from '../../../../kptfile-schema/index.ts';
import type { Oid, TreeEdit } from '../../../git/git-repository.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { isKptfilePath } from '../../merge/package-files.ts';
import { contentDigest, readPackage, skippedPath } from '../../model/content/content.ts';
import { UNKNOWN_INPUTS } from '../../model/content/inputs.ts';
import { checkPackageSize, MAX_FILES } from '../../model/content/package-size.ts';
import { DEFAULT_POLICY } from '../../model/policy/policy.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import type { NewRevision } from '../../upstream/revision-source.ts';
import {
  namesFunctions,
  type PackageTexts,
  RENDERED,
  recordRendering,
  renderedKptfile,
  renderFiles,
} from '../edit/render.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';

/** A new package as it is rendered. */
export interface RenderedTree {
  readonly root: Oid;
  /** The record with the result of rendering. */
  record(begun: RevisionRecord, at: string): RevisionRecord;
}

/**
 * Renders the package at a path of a new root tree. Only the condition `Rendered` is issued: policies apply to revisions, and this is
 * none yet, so the controller reports the other results of the pipeline.
 */
export async function renderNew(
  repo: RepositoryContext,
  root: Oid,
  path: string,
  context: RequestContext,
  onRendered?: NewRevision['onRendered'],
): Promise<RenderedTree> {
  const kptfiles = await kptfilesOf(repo, `${root}:${path}`);
  const functions = namesFunctions(kptfiles);
  const whole = functions === true ? await readPackage(repo.git, `${root}:${path}`, undefined) : undefined;
  const files = whole?.files ?? kptfiles;
  const all = functions === undefined ? undefined : await renderFiles(files, repo, DEFAULT_POLICY, context);
  if (all?.renderStatus !== undefined) onRendered?.(all.renderStatus);
  const own = files.get('Kptfile');
  if (all === undefined || own === undefined) return { root, record: (begun) => begun };
  const conditions = (all.conditions ?? []).filter(({ type }) => type === RENDERED.type);
  const rendering = { kptfile: all.kptfile, conditions };
  const text = renderedKptfile(Buffer.from(own).toString('utf8'), rendering);
  const edits = new Map<string, TreeEdit>([
    ...[...(all.edits ?? [])].map(([file, data]): [string, TreeEdit] => [
      `${path}/${file}`,
      data === null ? null : { data: Buffer.from(data) },
    ]),
    [`${path}/Kptfile`, { data: Buffer.from(text) }],
  ]);
  if (whole !== undefined) {
    const after = new Map<string, string | Uint8Array>([...whole.files, ['Kptfile', text]]);
    for (const [file, data] of all.edits ?? []) {
      if (data === null) after.delete(file);
      else if (file !== 'Kptfile') after.set(file, data);
    }
    checkPackageSize(path, after, whole.skipped.map(skippedPath));
  }
  const rendered = await repo.git.editTree(root, edits);
  const read = readKptfile(text);
  const entries = await repo.git.readTree(`${rendered}:${path}`);
  const content = contentDigest(entries ?? [], read.ok ? read.kptfile : undefined, Buffer.from(text));
  return {
    root: rendered,
    record: (begun, at) => recordRendering(begun, rendering, { ...UNKNOWN_INPUTS, content }, at),
  };
}

async function kptfilesOf({ git }: RepositoryContext, specification: string): Promise<PackageTexts> {
  const listed = await git.listFiles(specification, MAX_FILES);
  const found = listed.filter((entry) => isKptfilePath(entry.path) && entry.mode.startsWith('100'));
  const objects = await git.readObjects(found.map((entry) => entry.oid));
  return new Map(found.map((entry, index) => [entry.path, objects[index]?.data ?? Buffer.alloc(0)]));
}
