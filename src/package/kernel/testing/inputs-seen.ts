import { OBJECT_TYPE } from './package-data.ts';

/** Returns the inputs of a condition of a type: the object in the type, if there is one, else all. */
export function inputsSeen(
  type: string,
  { content, object }: { readonly content: number; readonly object: number | undefined },
): string {
  return type === OBJECT_TYPE && object !== undefined ? `object ${object}` : `all ${content} ${object}`;
}
