import { messageOf } from '../../foundation/sluice-error.ts';
import type { Client } from '../../resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { OwnerReference, Stored } from '../../resource/object/object.ts';
import { defineKind } from '../../resource/schema/define-kind.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { isExpected } from '../output/report-error.ts';
import { type CarriedMetadata, carriedMetadata, describeMetadata } from './carried-metadata.ts';
import type { RepositoryReport } from './migration-report.ts';
import { revisionView } from './revision-view.ts';

type CopiedMetadata = NonNullable<RepositoryReport['metadata']>;

export interface CopyMetadataOptions {
  readonly porch: readonly Stored<PackageRevision>[];
  readonly sluice: readonly Stored<PackageRevision>[];
  readonly client: Client;
  readonly namespace: string;
  /** Owners keep their uids: Sluice will run in their cluster. */
  readonly sameCluster: boolean;
  /** False to report only what would be copied. */
  readonly applied: boolean;
}

/** Copies labels, annotations and owners, which Porch keeps outside of Git, to the package revisions of one repository in Sluice. */
export async function copyMetadata({
  porch,
  sluice,
  client,
  namespace,
  sameCluster,
  applied,
}: CopyMetadataOptions): Promise<CopiedMetadata> {
  const ours = new Map(sluice.map((revision) => [revision.metadata.name, revision]));
  const done: CopiedMetadata[number][] = [];
  for (const revision of porch) {
    const own = ours.get(revision.metadata.name);
    const carried = own === undefined ? undefined : carriedMetadata(revisionView(revision), revisionView(own));
    if (own === undefined || carried === undefined) continue;
    const { name } = own.metadata;
    const what = describeMetadata(carried);
    if (!applied) {
      done.push({ name, copied: false, what });
      continue;
    }
    const problem = await copy(own, carried, { client, namespace, sameCluster });
    done.push({ name, copied: problem === undefined, what: problem === undefined ? what : `${what}: ${problem}` });
  }
  return done;
}

/** Returns why something was not copied. */
async function copy(
  own: Stored<PackageRevision>,
  { labels, annotations, owners }: CarriedMetadata,
  { client, namespace, sameCluster }: Pick<CopyMetadataOptions, 'client' | 'namespace' | 'sameCluster'>,
): Promise<string | undefined> {
  const there: OwnerReference[] = [];
  const missing: string[] = [];
  for (const owner of owners) {
    const uid = sameCluster ? owner.uid : await uidOf(owner, client, namespace);
    // A controller deletes what belongs to an owner that it does not know.
    if (uid === undefined) missing.push(`${owner.kind}/${owner.name}`);
    else there.push({ ...owner, uid });
  }
  const ownerReferences =
    there.length === 0 ? {} : { ownerReferences: [...(own.metadata.ownerReferences ?? []), ...there] };
  const metadata = { labels, annotations, ...ownerReferences };
  try {
    if (Object.keys(labels).length + Object.keys(annotations).length + there.length > 0)
      await client.patch(packageRevisionKind, { namespace, name: own.metadata.name }, { metadata });
  } catch (error) {
    if (!isExpected(error)) throw error;
    return messageOf(error);
  }
  return missing.length === 0 ? undefined : `Sluice does not have the owner ${missing.join(', ')}`;
}

/** The uid of an owner in Sluice; undefined if it has none, or does not serve its kind. */
async function uidOf(owner: OwnerReference, client: Client, namespace: string): Promise<string | undefined> {
  const kind = kindOf(owner);
  try {
    const found = kind === undefined ? undefined : await client.find(kind, { namespace, name: owner.name });
    return found?.metadata.uid;
  } catch (error) {
    // It does not serve the kind, or not to the caller.
    if (isExpected(error)) return undefined;
    throw error;
  }
}

function kindOf({ apiVersion, kind }: OwnerReference): Kind | undefined {
  const [group, version] = apiVersion.split('/');
  if (group === undefined || version === undefined) return undefined;
  return defineKind({ group, version, kind, plural: `${kind.toLowerCase()}s`, description: `A ${kind}.` });
}
