import { SluiceError } from '../../../foundation/sluice-error.ts';

const MAX_ELEMENTS = 200;

/** One element of a path: `env[2]`, or in a pattern `env[*]`, `*`, `**`. */
interface Element {
  readonly name: string;
  readonly indexes: readonly string[];
}

/** A path expression: `*` is any element, `**` any number of them, `[*]` any place in a list. */
export class PathPattern {
  readonly #elements: readonly Element[];

  /** Throws InvalidInput for one that is longer than any path. */
  constructor(text: string) {
    const elements = text.split('.');
    if (elements.length > MAX_ELEMENTS)
      throw new SluiceError(
        'InvalidInput',
        `by-path has ${elements.length} elements; at most ${MAX_ELEMENTS} are possible`,
      );
    this.#elements = elements.map(parseElement);
  }

  /** True for a path such as `spec.containers[0].env`. */
  matches(path: string): boolean {
    const elements = this.#elements;
    // Places in the pattern that the path so far may have reached.
    let places = new Set<number>();
    const reach = (into: Set<number>, place: number) => {
      into.add(place);
      if (elements[place]?.name === '**') reach(into, place + 1);
    };
    reach(places, 0);
    for (const text of path.split('.')) {
      const element = parseElement(text);
      const next = new Set<number>();
      for (const place of places) {
        const expected = elements[place];
        if (expected === undefined) continue;
        if (expected.name === '**') reach(next, place);
        else if (fits(expected, element)) reach(next, place + 1);
      }
      if (next.size === 0) return false;
      places = next;
    }
    return places.has(elements.length);
  }
}

function parseElement(text: string): Element {
  const [name = '', ...indexes] = text.split('[');
  return { name, indexes: indexes.map((index) => index.replace(/\]$/, '')) };
}

function fits(expected: Element, { name, indexes }: Element): boolean {
  if (expected.name !== '*' && expected.name !== name) return false;
  if (expected.name === '*' && expected.indexes.length === 0) return true;
  return (
    expected.indexes.length === indexes.length &&
    expected.indexes.every((index, at) => index === '*' || index === indexes[at])
  );
}
