import { nearMisses } from '../../foundation/text/near-misses.ts';
import { builtIns } from '../../function/built-in/index.ts';
import { parseImageName } from '../../function/catalog/image-name.ts';

/** Built-in functions that the user may have meant by the name of an image. */
export function nearBuiltIns(image: string): string[] {
  const names = builtIns.map(({ name }) => name);
  return nearMisses(parseImageName(image).name, names);
}
