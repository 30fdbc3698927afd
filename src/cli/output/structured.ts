import { dump } from 'js-yaml';

export const OUTPUT_FORMATS = ['table', 'wide', 'yaml', 'json', 'name'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** Escaped in JSON as well, where they are allowed: a terminal may read the output before a program does. */
const STEERING = /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

export function toJson(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2) ?? 'null';
  return `${text.replace(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;
}

/** Block style, keys in the order of the object, no line folding. */
export function toYaml(value: unknown): string {
  // Through JSON, so that absent fields and frozen views become plain data.
  const plain: unknown = JSON.parse(JSON.stringify(value) ?? 'null');
  const text = dump(plain, { lineWidth: -1, noRefs: true });
  // js-yaml leaves marks that reorder text as they are; JSON is YAML too and can escape them anywhere.
  return text.search(STEERING) === -1 ? text : toJson(plain);
}
