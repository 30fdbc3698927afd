import type { FieldShape } from '../model/field-shape.ts';
import type { YamlNode } from '../yaml/yaml-tree.ts';
import type { LintReport, Step } from './lint-finding.ts';

/** Function fields that kpt's documentation has, but not every kpt in use: older ones refuse the whole file. */
const NEWER_FIELDS: ReadonlySet<string> = new Set(['configRef', 'when']);

/** Reports fields that kpt's strict decoder refuses, and texts that other YAML readers take for something else. */
export function lintFields(node: YamlNode, shape: FieldShape, steps: readonly Step[], report: LintReport): void {
  if (shape.kind === 'string') {
    if (node.kind === 'scalar' && node.form === 'plain' && node.tag === undefined && looksTyped(node.text)) {
      const text = JSON.stringify(node.text);
      report.warning(
        'NotText',
        steps,
        `kpt reads this as the text ${text}, other YAML readers do not. Write it in quotes.`,
      );
    }
  } else if (shape.kind === 'list' && node.kind === 'sequence') {
    node.items.forEach((item, index) => {
      lintFields(item, shape.item, [...steps, index], report);
    });
  } else if (shape.kind === 'map' && node.kind === 'mapping') {
    for (const [key, { value }] of node.entries) lintFields(value, shape.value, [...steps, key], report);
  } else if (shape.kind === 'object' && node.kind === 'mapping') {
    for (const [key, { value }] of node.entries) {
      const field = shape.fields.get(key);
      const path = [...steps, key];
      if (field === undefined) {
        report.error(
          'UnknownField',
          path,
          `kpt knows no field ${key} here and refuses the file.${hint(key, shape.fields)}`,
        );
        continue;
      }
      if (NEWER_FIELDS.has(key)) {
        report.warning(
          'NewerField',
          path,
          `Only newer versions of kpt know the field ${key}; older ones refuse the file.`,
        );
      }
      lintFields(value, field, path, report);
    }
  }
}

function looksTyped(text: string): boolean {
  if (/^(?:true|True|TRUE|false|False|FALSE)$/.test(text)) return true;
  return /^[-+]?(?:\.?\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?\d+)?|0x[\da-fA-F_]+|0o?[0-7_]+|0b[01_]+)$/.test(text);
}

function hint(key: string, fields: ReadonlyMap<string, FieldShape>): string {
  for (const name of fields.keys()) {
    if (isNear(key.toLowerCase(), name.toLowerCase())) return ` Did you mean ${name}?`;
  }
  return ' Move its value to an annotation or a separate file.';
}

/** True if two words differ by few inserted, removed or changed letters (Levenshtein distance): two, one if short. */
function isNear(left: string, right: string): boolean {
  const limit = right.length > 6 ? 2 : 1;
  if (Math.abs(left.length - right.length) > limit) return false;
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const change = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return (row[right.length] ?? 0) <= limit;
}
