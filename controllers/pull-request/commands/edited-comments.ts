import type { Comment } from '../../../src/forge/forge.ts';
import { digest } from '../../../src/foundation/text/canonical-json.ts';

const MAX_COMMENTS = 500;
/** No digest. */
const EDITED = 'edited';

/**
 * True for a comment that was changed after it was written, or after it was read the first time, also within one second, below which hosts report no
 * times. `texts` has the digests of the texts that were read, by the ids of their comments.
 */
export function isEdited(texts: Map<string, string>, { id, body, createdAt, updatedAt }: Comment): boolean {
  const text = updatedAt === createdAt ? digest(body) : EDITED;
  const known = texts.get(id) ?? text;
  texts.set(id, known === text ? text : EDITED);
  const [oldest = ''] = texts.keys();
  if (texts.size > MAX_COMMENTS) texts.delete(oldest);
  return texts.get(id) === EDITED;
}
