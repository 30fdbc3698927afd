import { messageOf } from '../../foundation/sluice-error.ts';
import type { Forge } from '../forge.ts';
import { isPermanent } from '../pause-after.ts';

/** Writes the comment about a topic. Returns why the host does not permit it; undefined if it was written. */
export async function postComment(
  forge: Pick<Forge, 'setComment'>,
  number: number,
  topic: string,
  text: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await forge.setComment(number, topic, text, signal);
    return undefined;
  } catch (error) {
    if (!isPermanent(error)) throw error;
    return messageOf(error);
  }
}
