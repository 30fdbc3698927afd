import type { Kptfile, KptfileEdit } from '../../kptfile-schema/index.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';

type Lists = NonNullable<PackageVariant['spec']['pipeline']>;
type AddFunction = Extract<KptfileEdit, { op: 'addFunction' }>;

/** Edits after which the pipeline begins with the functions of the variant, in their order, and has no former ones of it. */
export function pipelineEdits(name: string, pipeline: Lists | undefined, kptfile: Kptfile): KptfileEdit[] {
  return (['mutators', 'validators'] as const).flatMap((list) => {
    const present = kptfile.pipeline?.[list] ?? [];
    const wanted = (pipeline?.[list] ?? []).map((entry, position) => ({
      ...entry,
      name: `PackageVariant.${name}.${entry.name ?? ''}.${position}`,
    })) as AddFunction['function'][];
    const own = present.flatMap((entry, index) => (isOf(name, entry.name) ? [index] : []));
    const isCurrent =
      own.length === wanted.length &&
      wanted.every((entry, index) => own[index] === index && sameValue(present[index], entry));
    if (isCurrent) return [];
    return [
      ...own.toReversed().map((index): KptfileEdit => ({ op: 'removeFunction', list, index })),
      ...wanted.map((entry, index): KptfileEdit => ({ op: 'addFunction', list, function: entry, index })),
    ];
  });
}

/** True for the name of an entry of this variant. Names of variants may contain dots, names of functions may not. */
function isOf(variant: string, entry: string | undefined): boolean {
  const prefix = `PackageVariant.${variant}.`;
  return entry?.startsWith(prefix) === true && /^[^.]*\.\d+$/.test(entry.slice(prefix.length));
}
