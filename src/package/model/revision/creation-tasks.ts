import { z } from 'zod';
import { publishedRecordOf } from '../record/commit-message.ts';
import type { PackageRevision } from './package-revision.ts';

/** Returns the tasks that created the revision. Sluice stores them in the record, Porch in the commit at the tip. */
export function creationTasks({ record, tip }: PackageRevision): unknown[] {
  const task = record?.task ?? publishedRecordOf(tip.facts)?.task;
  if (task !== undefined) return [task];
  return tip.facts.annotations.flatMap((annotation) => annotation.task ?? []);
}

/** A version of a package in Git, as tasks and Kptfiles name it. */
export interface GitVersion {
  readonly repo: string;
  readonly directory: string;
  readonly ref: string;
}

/** What a revision was made from. */
export type CreationSource =
  /** A clone of a revision of the same namespace, or an upgrade to it. */
  | { readonly upstream: string }
  | { readonly git: GitVersion }
  /** A copy of a revision of the same package. */
  | { readonly copied: string };

const named = z.object({ name: z.string() });
const taskSchema = z.object({
  clone: z
    .object({
      upstreamRef: z.object({
        upstreamRef: named.optional(),
        git: z.object({ repo: z.string(), directory: z.string().default(''), ref: z.string() }).optional(),
      }),
    })
    .optional(),
  upgrade: z.object({ newUpstreamRef: named }).optional(),
  edit: z.object({ sourceRef: named }).optional(),
});

/** What its tasks say that a revision was made from: users who edit the draft do not write these. None of a draft that was pushed. */
export function creationSources(revision: PackageRevision): CreationSource[] {
  return creationTasks(revision).flatMap((task): CreationSource[] => {
    const { success, data } = taskSchema.safeParse(task);
    if (!success) return [];
    const { upstreamRef, git } = data.clone?.upstreamRef ?? {};
    return [
      ...[upstreamRef, data.upgrade?.newUpstreamRef].flatMap((one) =>
        one === undefined ? [] : { upstream: one.name },
      ),
      ...(git === undefined ? [] : [{ git }]),
      ...(data.edit === undefined ? [] : [{ copied: data.edit.sourceRef.name }]),
    ];
  });
}
