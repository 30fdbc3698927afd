import { counted } from '../../foundation/text/counted.ts';
import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Note } from './migration-report.ts';
import { revisionView } from './revision-view.ts';

type Revisions = readonly Stored<PackageRevision>[];
/** What is true of some package revisions. */
type Finding = Pick<Note, 'reason' | 'message' | 'next'> & { readonly noun: string; readonly plural?: string };
type Place = Pick<Note, 'namespace' | 'subject'>;

const ADOPTION = 'check the list, and repeat it with --yes';

/** What Porch's package revisions of a repository will be in Sluice, judged before it is registered. */
export function expectedNotes(place: Place, porch: Revisions): readonly Note[] {
  const published = porch.filter((one) => isPublished(one.spec.lifecycle) && revisionView(one).revision > 0);
  const closed = porch.filter(({ spec, status }) => {
    const gates = (spec.readinessGates ?? []).map(({ conditionType }) => conditionType);
    return !isPublished(spec.lifecycle) && gates.some((gate) => statusOf(status, gate) !== 'True');
  });
  return [
    ...noteOf(place, published, {
      reason: 'OutOfBand',
      noun: 'publication',
      message: 'without a signed approval, out of band until an operator adopts them',
      next: `after the registration: ${adoptCommand(place)}; ${ADOPTION}`,
    }),
    ...noteOf(place, closed, closedGates(place)),
    ...deletedNotes(place, porch),
  ];
}

/** What Sluice says about its package revisions of a repository. */
export function observedNotes(place: Place, porch: Revisions, sluice: Revisions): readonly Note[] {
  const reasons = new Set(
    sluice.flatMap(({ status }) => (status?.outOfBand === undefined ? [] : [status.outOfBand.reason])),
  );
  const outOfBand = [...reasons].sort().flatMap((reason) =>
    noteOf(
      place,
      sluice.filter(({ status }) => status?.outOfBand?.reason === reason),
      {
        reason,
        noun: 'publication',
        message: `out of band (${reason}), and not delivered until an operator adopts them`,
        next: `${adoptCommand(place)}; ${ADOPTION}`,
      },
    ),
  );
  const distrusted = sluice.filter(({ status }) => status?.recordDistrust !== undefined);
  const waiting = sluice.filter(
    ({ spec, status }) => !isPublished(spec.lifecycle) && statusOf(status, 'sluice.dev/Ready') === 'False',
  );
  return [
    ...outOfBand,
    ...noteOf(place, distrusted, {
      reason: 'RecordDistrust',
      noun: 'package revision',
      message: 'with records that do not count',
      next: `${adoptCommand(place)}; ${ADOPTION}`,
    }),
    ...noteOf(place, waiting, closedGates(place)),
    ...deletedNotes(place, porch),
  ];
}

function deletedNotes(place: Place, porch: Revisions): readonly Note[] {
  const deleted = porch.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  return noteOf(place, deleted, {
    reason: 'BeingDeleted',
    noun: 'package revision',
    message: 'being deleted at Porch, and kept by finalizers',
    next: 'finish or undo the deletion at Porch; finalizers are not copied',
  });
}

function closedGates({ namespace }: Place): Finding {
  return {
    reason: 'GatesClosed',
    noun: 'draft or proposal',
    plural: 'drafts and proposals',
    message: 'with closed gates, which Sluice does not let through (Porch leaves that to its clients)',
    next: `sluice why <name> -n ${namespace}`,
  };
}

function noteOf(place: Place, objects: Revisions, { noun, plural, message, ...note }: Finding): Note[] {
  if (objects.length === 0) return [];
  const names = objects.map(({ metadata }) => metadata.name).sort();
  return [{ ...place, ...note, message: `${counted(names.length, noun, plural)} ${message}`, names }];
}

/** Notes about an installation in a cluster, whose server adopts nothing for its clients. */
export function notesInCluster(notes: readonly Note[]): readonly Note[] {
  const place = 'in a data folder whose key the cluster trusts (docs/trust.md): ';
  return notes.map(({ next, ...note }) =>
    next === undefined ? note : { ...note, next: next.replace('sluice repo adopt ', `${place}$&`) },
  );
}

function adoptCommand({ namespace, subject }: Place): string {
  return `sluice repo adopt ${subject} -n ${namespace}`;
}

function isPublished(lifecycle: string | undefined): boolean {
  return lifecycle === 'Published' || lifecycle === 'DeletionProposed';
}

function statusOf(status: PackageRevision['status'], condition: string): string | undefined {
  return status?.conditions?.find(({ type }) => type === condition)?.status;
}
