import { HOUSEKEEPERS } from '../../app/controllers/housekeepers.ts';
import type { SluiceService } from '../../app/service/service.ts';
import type { Session } from '../../app/session/session.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import type { Explanation } from '../../package/model/revision/explanation.ts';
import { isPlaceholder } from '../../package/model/revision/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../resource/object/condition.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import type { PlaceExplanation } from '../access/placed-explanation.ts';
import { printable } from '../output/printable.ts';
import type { Terminal } from '../output/terminal.ts';

export interface WaitReport {
  /** Revisions that are not published, or wait for deletion. */
  readonly revisions: readonly (Explanation & { readonly namespace: string })[];
  /** Number of revisions that the report omits. */
  readonly more: number;
  readonly timers: readonly { readonly what: string; readonly due: string; readonly reason: string }[];
  /** Repositories that are not ready. */
  readonly repositories: readonly NotReady[];
  /** Failures that controllers retry. */
  readonly failing: readonly { readonly what: string; readonly message: string }[];
  /** Delivery targets to which a delivery is missing. */
  readonly targets: readonly NotReady[];
}

interface NotReady {
  readonly namespace: string;
  readonly name: string;
  readonly message: string;
}

/** Controllers that run periodically, which does not count as waiting. */
const LOOKING: ReadonlySet<string> = new Set(['repository', 'delivery', 'package-policy', ...HOUSEKEEPERS]);

/** So many revisions are explained one by one. */
const MAX_LISTED = 50;

/** Reports the remaining objects and the reason why each of them waits. */
export async function waitReport(
  session: Session,
  service: SluiceService,
  place: PlaceExplanation,
): Promise<WaitReport> {
  const staying = session.store.list().filter((row) => row.lifecycle !== 'Published' && !isPlaceholder(row));
  const revisions: WaitReport['revisions'][number][] = [];
  for (const { namespace, name } of staying.slice(0, MAX_LISTED)) {
    const explanation = await session.readings.explain(session.context(), { namespace, name });
    revisions.push({ namespace, ...place(explanation, namespace) });
  }
  const timers = service.manager
    .waiting()
    .filter(({ controller }) => !LOOKING.has(controller))
    .map(({ controller, key, due, reason }) => ({
      what: `${controller} ${key}`,
      due: timestamp(due),
      reason: reason ?? '',
    }));
  const notReady = (items: readonly Parameters<typeof readiness>[0][]): NotReady[] =>
    items.flatMap((item) => {
      const message = readiness(item);
      const { namespace = DEFAULT_NAMESPACE, name } = item.metadata;
      return message === undefined ? [] : [{ namespace, name, message }];
    });
  return {
    revisions,
    more: staying.length - revisions.length,
    timers,
    repositories: notReady((await session.client.list(repositoryKind)).items),
    failing: service.failing(),
    targets: notReady((await session.client.list(deliveryTargetKind)).items),
  };
}

interface WithConditions {
  readonly metadata: { readonly namespace?: string | undefined; readonly name: string };
  readonly status?: { readonly conditions?: Parameters<typeof findCondition>[0] } | undefined;
}

/** Returns why an object is not ready; undefined if it is, or if no controller has evaluated it yet. */
function readiness({ status }: WithConditions): string | undefined {
  const ready = findCondition(status?.conditions, 'Ready');
  return ready?.status === 'False' ? [ready.reason, ready.message].filter((text) => text !== '').join(': ') : undefined;
}

export function printWaitReport(terminal: Terminal, report: WaitReport): void {
  const { revisions, more, timers, repositories, targets, failing } = report;
  if (repositories.length > 0) terminal.line('Repositories that cannot be used:');
  const printNotReady = ({ namespace, name, message }: NotReady) =>
    terminal.line(`  ${nameIn(namespace, name)}: ${printable(message)}`, namespace);
  for (const one of repositories) printNotReady(one);
  if (targets.length > 0) terminal.line('Targets to which a delivery is missing:');
  for (const one of targets) printNotReady(one);
  if (failing.length > 0) terminal.line('What failed, and is tried again while "sluice up" runs:');
  for (const { what, message } of failing)
    terminal.line(`  ${printable(what)}: ${printable(message)}`, namespaceOf(what));
  if (revisions.length === 0) terminal.line('No revision waits.');
  else terminal.line('What waits:');
  for (const revision of revisions) printRevision(terminal, revision);
  if (more > 0) terminal.line(`  and ${more} more; "sluice why <revision>" explains each`);
  if (timers.length > 0) terminal.line('Scheduled work:');
  for (const { what, due, reason } of timers)
    terminal.line(`  ${due}  ${printable(what)}: ${printable(reason)}`, namespaceOf(what));
}

/** The namespace in `<controller> <namespace>/<name>`. */
function namespaceOf(what: string): string | undefined {
  return /^\S+ ([^/\s]+)\//.exec(what)?.[1];
}

/** A name with its namespace, where commands need that. */
function nameIn(namespace: string, name: string): string {
  return printable(namespace === DEFAULT_NAMESPACE ? name : `${namespace}/${name}`);
}

function printRevision(terminal: Terminal, explanation: WaitReport['revisions'][number]): void {
  const { namespace, name, lifecycle, gates, reasons, enforcement, next } = explanation;
  terminal.line(`  ${terminal.style('bold', nameIn(namespace, name))}  ${lifecycle}`);
  const closed = gates.filter((gate) => !gate.open);
  for (const gate of closed) {
    const gateName = terminal.style('yellow', `gate ${printable(gate.type)}`);
    terminal.line(
      `    ${gateName}: ${printable(gate.explanation)}; settled by ${printable(gate.settledBy)}`,
      namespace,
    );
  }
  // Each closed gate has a line already.
  const others = enforcement === 'enforce' ? reasons.filter(({ reason }) => reason !== 'GatesClosed') : reasons;
  for (const { message } of others) terminal.line(`    ${printable(message)}`, namespace);
  const [first] = next;
  if (first !== undefined) terminal.line(`    next: ${printable(first)}`);
}
