import { flushEvents } from '../../../src/controller/event-recorder.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type Event, eventKind } from '../../../src/resource/kinds/core/event.ts';

const REASONS = ['MergedOutside', 'MergeNotPublished'];

/**
 * The events that report of the merge of a pull request that it publishes nothing. Comments and texts on the host do not show that, as users with write
 * access change them. Events last an hour: a later process can report a merge once more.
 */
export async function eventsOfMerge(
  client: Pick<Client, 'list'>,
  { namespace, url }: { readonly namespace: string | undefined; readonly url: string },
  signal: AbortSignal,
): Promise<readonly Event[]> {
  await flushEvents();
  const names = ({ message }: Event) =>
    message
      .split(url)
      .slice(1)
      .some((rest) => !/^\d/.test(rest));
  try {
    const found: Event[] = [];
    for (const reason of REASONS) {
      const selected = { fieldSelector: `reason=${reason}`, ...(namespace === undefined ? {} : { namespace }), signal };
      found.push(...(await client.list(eventKind, selected)).items);
    }
    return found.filter(names);
  } catch (error) {
    // Without the right to list them: to report it twice is better than not at all.
    if (isSluiceError(error, 'Refused')) return [];
    throw error;
  }
}
