import type { Event } from '../../src/resource/kinds/core/event.ts';
import { type Notification, notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { labelSelector, matchesLabels } from '../../src/resource/selector/label-selector.ts';

type Rule = Notification['spec']['events'][number];
type Labels = Readonly<Record<string, string>> | undefined;

/** The rules of a Notification that select an event, apart from their label selectors. */
export function matchingRules({ metadata, spec }: Stored<Notification>, event: Stored<Event>): readonly Rule[] {
  const { involvedObject, type, reason } = event;
  // Rights are granted by namespace. A failure to send would lead to another message.
  if (event.metadata.namespace !== metadata.namespace || involvedObject.kind === notificationKind.kind) return [];
  return spec.events.filter(
    (rule) =>
      (rule.kinds === undefined || rule.kinds.some((kind) => kind === involvedObject.kind)) &&
      (rule.types === undefined || rule.types.includes(type)) &&
      matchesPattern(rule.reasons, reason) &&
      matchesPattern(rule.names, involvedObject.name ?? ''),
  );
}

/** True if one of the rules selects the labels of the object; `labels` is called only if all have a selector. */
export async function selectsLabels(rules: readonly Rule[], labels: () => Promise<Labels>): Promise<boolean> {
  if (rules.some(({ selector }) => selector === undefined)) return true;
  if (rules.length === 0) return false;
  const found = await labels();
  return rules.some(({ selector }) => selector !== undefined && matchesLabels(labelSelector(selector), found));
}

function matchesPattern(patterns: readonly string[] | undefined, text: string): boolean {
  return (
    patterns === undefined ||
    patterns.some((pattern) => (pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern))
  );
}
