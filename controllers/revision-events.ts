import type { EventRecorder, EventType } from '../src/controller/event-recorder.ts';
import { isPublished, type PackageRevision } from '../src/package/model/revision/package-revision.ts';
import { packageRevisionKind } from '../src/resource/kinds/porch/package-revision.ts';

/** Revisions that get an event of one occasion: a first delivery can have thousands, and the event of its target covers them all. */
const MAX_REVISIONS = 50;

/** A published revision of a package. */
export interface PublishedName {
  readonly repository: string;
  readonly package: string;
  readonly revision: number;
}

interface Packages {
  readonly repository: string;
  readonly index: { ofPackage(path: string): readonly PackageRevision[] };
}

export interface RevisionEvent {
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** Records what happened to published revisions on their PackageRevisions, which users read with `kubectl describe`. */
export function recordOnRevisions(
  recorder: Pick<EventRecorder, 'record'>,
  repositories: readonly Packages[],
  revisions: readonly PublishedName[],
  { type, reason, message }: RevisionEvent,
): void {
  for (const name of revisions.slice(0, MAX_REVISIONS)) {
    const row = repositories
      .find(({ repository }) => repository === name.repository)
      ?.index.ofPackage(name.package)
      .find((one) => isPublished(one) && one.revision === name.revision);
    if (row === undefined) continue;
    const { apiVersion, kind } = packageRevisionKind;
    const metadata = { namespace: row.namespace, name: row.name, uid: row.uid };
    recorder.record({ apiVersion, kind, metadata }, type, reason, message);
  }
}
