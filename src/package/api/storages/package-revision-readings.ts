import type { z } from 'zod';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import { packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import { type DeepReadonly, type KubernetesObject, keyText, type ObjectKey } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { wholeObject } from '../../../resource/schema/schema-of-kind.ts';
import { structuralFromZod } from '../../../resource/schema/structural/structural-from-zod.ts';
import { notFound, resourceName } from '../../../resource/storage/memory/object-rules.ts';
import type { ReadOnlySubResource } from '../../../resource/storage/storage.ts';
import { NO_FILES } from '../../model/diff/compared-files.ts';
import { type FileChanges, fileChanges } from '../../model/diff/file-diff.ts';
import type { Explanation } from '../../model/revision/explanation.ts';
import { type PackageRevision, repositoryIdOf, revisionId } from '../../model/revision/package-revision.ts';
import {
  diffSchema,
  explainSchema,
  historySchema,
  previewSchema,
  type RevisionPreview,
} from '../../model/revision/revision-readings.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import type { OpenPurpose } from '../../store/revision-store-options.ts';
import type { RevisionEntry } from '../objects/revision-entry.ts';
import type { RevisionTable } from '../table/revision-table.ts';
import { diffBases } from './diff-base.ts';

/** Explains the state of a revision. NotFound if there is none, with the facts about a deleted one. */
export type ExplainRevision = (context: RequestContext, key: ObjectKey) => Promise<Explanation>;

/** The changes that the publication of a revision commits to a target, or to all that select it. NotFound for an unknown target. */
export type PreviewRevision = (
  context: RequestContext,
  revision: PackageRevision,
  target: string | undefined,
) => Promise<RevisionPreview>;

/** The readings that need more than the packages; one that is absent is not served. */
export interface ComputedReadings {
  readonly explain?: ExplainRevision | undefined;
  readonly preview?: PreviewRevision | undefined;
}

const GROUP = 'sluice.dev';
const VERSION = 'v1alpha1';
const DEFAULT_ENTRIES = 100;
const MAX_ENTRIES = 10_000;

/** The sub-resources of PackageRevision that are only read: its history, its difference from another revision, why it waits. */
export function packageRevisionReadings(
  store: RevisionStore,
  table: Pick<RevisionTable, 'get'>,
  { explain, preview }: ComputedReadings,
): ReadOnlySubResource[] {
  const history = reading('history', 'PackageRevisionHistory', historySchema, {
    description: 'What happened to a package revision, and who did it.',
    parameters: [{ name: 'limit', description: `How many entries at most; ${DEFAULT_ENTRIES} if absent.` }],
    read: async (_context, key, parameters) => {
      const limit = limitOf(parameters);
      const { revision } = await existing(store, table, key, 'look');
      const entries = await store.history(revisionId(revision), limit);
      return {
        entries: entries.map(({ reason, ...entry }) => ({ ...entry, ...(reason === undefined ? {} : { reason }) })),
      };
    },
  });
  const diff = reading('diff', 'PackageRevisionDiff', diffSchema, {
    description: 'The files in which a package revision differs from another one.',
    parameters: [
      {
        name: 'with',
        description:
          'The other revision: a name, latest (the latest published revision of the package) or source (what the revision was made from, else the published revision before it). Default: source.',
      },
    ],
    read: async (context, key, parameters) => {
      const entry = await existing(store, table, key);
      const base = await baseOf(store, table, entry, { context, word: parameters.get('with') || 'source' });
      return {
        ...(base === undefined ? {} : { from: base.name }),
        to: key.name,
        ...(await changesBetween(store, context, base, entry.revision)),
      };
    },
  });
  const readings = [history, diff];
  if (preview !== undefined) readings.push(previewReading(store, table, preview));
  if (explain === undefined) return readings;
  const explanation = reading('explain', 'PackageRevisionExplanation', explainSchema, {
    description: 'Why a package revision is where it is, and what would move it on.',
    parameters: [],
    read: async (context, key) => ({ explanation: await explain(context, key) }),
  });
  return [...readings, explanation];
}

function previewReading(
  store: RevisionStore,
  table: Pick<RevisionTable, 'get'>,
  preview: PreviewRevision,
): ReadOnlySubResource {
  return reading('preview', 'PackageRevisionPreview', previewSchema, {
    description: 'The changes that the publication of a package revision commits to delivery targets.',
    parameters: [
      { name: 'target', description: 'Name of a DeliveryTarget. Default: every target that selects the package.' },
    ],
    read: async (context, key, parameters) => {
      const { revision } = await existing(store, table, key);
      return preview(context, revision, parameters.get('target') || undefined);
    },
  });
}

function reading<Schema extends z.ZodObject>(
  name: string,
  kind: string,
  schema: Schema,
  {
    description,
    parameters,
    read,
  }: Pick<ReadOnlySubResource, 'parameters'> & {
    readonly description: string;
    readonly read: (
      context: RequestContext,
      key: ObjectKey,
      parameters: URLSearchParams,
    ) => Promise<DeepReadonly<z.infer<Schema>>>;
  },
): ReadOnlySubResource {
  const apiVersion = `${GROUP}/${VERSION}`;
  return {
    ...{ name, parameters, kind: { group: GROUP, version: VERSION, kind } },
    schema: () => wholeObject(description, structuralFromZod(schema)),
    read: async (context, key, query): Promise<KubernetesObject> => ({
      ...{ apiVersion, kind, metadata: { name: key.name, ...(key.namespace && { namespace: key.namespace }) } },
      ...(await read(context, key, query)),
    }),
  };
}

async function changesBetween(
  store: RevisionStore,
  { signal }: RequestContext,
  base: PackageRevision | undefined,
  revision: PackageRevision,
): Promise<FileChanges> {
  const before = base === undefined ? NO_FILES : await store.files(revisionId(base));
  const after = await store.files(revisionId(revision));
  return fileChanges(before, after, signal);
}

/** A right to read one revision is none to read the files of another, nor to learn which ones exist. */
async function requireReadable({ mayReadOther }: RequestContext, name: string, word: string): Promise<void> {
  if (mayReadOther === undefined || (await mayReadOther(name))) return;
  const resource = resourceName(packageRevisionKind);
  throw new SluiceError(
    'Refused',
    name === word
      ? `${resource} ${JSON.stringify(name)} is forbidden: a comparison with it needs the right to get its sub-resource diff as well`
      : `${resource} is forbidden: a comparison with ${word} needs the right to get the sub-resource diff of that revision as well`,
  );
}

async function existing(
  store: RevisionStore,
  table: Pick<RevisionTable, 'get'>,
  key: ObjectKey,
  purpose: OpenPurpose = 'use',
): Promise<RevisionEntry> {
  await store.reach(`${key.namespace}/${repositoryOf(key.name)}`, purpose);
  const found = table.get(key);
  if (found === undefined) throw store.openingError(keyText(key)) ?? notFound(packageRevisionKind, key.name);
  return found;
}

/** Returns the revision to compare with; undefined for a package without an earlier one. */
async function baseOf(
  store: RevisionStore,
  table: Pick<RevisionTable, 'get'>,
  { revision, object }: RevisionEntry,
  { context, word }: { readonly context: RequestContext; readonly word: string },
): Promise<PackageRevision | undefined> {
  const { namespace } = revision;
  const ofPackage = store
    .list({ repository: repositoryIdOf(revision), package: revision.key.package })
    .flatMap(({ name }) => table.get({ namespace, name })?.object ?? []);
  for (const name of diffBases(object, ofPackage, word)) {
    // Access is checked before the look-up, so that a refusal does not reveal whether the revision exists.
    await requireReadable(context, name, word);
    const isExplicit = name === word;
    try {
      return (await existing(store, table, { namespace, name })).revision;
    } catch (error) {
      // If the source or its repository no longer exists or cannot be opened, the previous published revision is used.
      const isMissing = isSluiceError(error, 'NotFound') || isSluiceError(error, 'Unavailable');
      if (isExplicit || !isMissing) throw error;
    }
  }
  return undefined;
}

/** The repository that the name of a revision begins with: names of repositories have no dot. */
function repositoryOf(revisionName: string): string {
  return revisionName.split('.', 1)[0] ?? '';
}

function limitOf(parameters: URLSearchParams): number {
  const text = parameters.get('limit') || String(DEFAULT_ENTRIES);
  const limit = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
  if (limit > 0) return Math.min(limit, MAX_ENTRIES);
  throw new SluiceError(
    'InvalidInput',
    `the parameter limit must be a whole number above 0, not ${JSON.stringify(text.slice(0, 20))}`,
  );
}
