import { compileExpression } from '../../src/expression/expression.ts';
import { messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import { nearHint } from '../../src/foundation/text/near-misses.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import type { PackageVariantSet } from '../../src/resource/kinds/porch/package-variant-set.ts';
import {
  notText,
  REPOSITORY_VARIABLES,
  TEMPLATE_LIMITS,
  TEMPLATE_VARIABLES,
} from '../../src/resource/kinds/porch/template-expressions.ts';
import type { ObjectMeta } from '../../src/resource/object/object.ts';

type Spec = PackageVariantSet['spec'];
type Template = NonNullable<Spec['targets'][number]['template']>;
type MapExpressions = NonNullable<Template['labelExprs']>;

/** One place of a set: what its expressions are evaluated for. */
export interface Place {
  /** `spec.targets[2]`. */
  readonly field: string;
  /** What the target names or selects: `ConfigMap berlin`, `Repository edge`. */
  readonly subject: string;
  readonly template: Template | undefined;
  readonly repoDefault: string;
  readonly packageDefault: string;
  /** The selected object; undefined for a repository that the set names. */
  readonly object: { readonly metadata: ObjectMeta } | undefined;
}

/** What expressions read besides the place. */
export interface TemplateInputs {
  readonly upstream: { readonly metadata: ObjectMeta };
  repository(name: string): { readonly metadata: ObjectMeta } | undefined;
  /** Names of all of them. */
  repositories(): Iterable<string>;
}

/**
 * The spec of the variant of a place. Throws InvalidInput, with the field below the target, for an expression that fails or yields no text.
 */
export function renderVariant(
  upstream: Spec['upstream'],
  { template, repoDefault, packageDefault, object }: Place,
  inputs: TemplateInputs,
): unknown {
  // As in Porch, only a template needs the repository to exist already.
  if (template === undefined) return { upstream, downstream: { repo: repoDefault, package: packageDefault } };
  const at = 'template';
  const target = object === undefined ? { repo: repoDefault, package: packageDefault } : inputOf(object);
  const base = { repoDefault, packageDefault, upstream: inputOf(inputs.upstream), target };
  const { downstream = {} } = template;
  const repo =
    downstream.repoExpr === undefined
      ? (downstream.repo ?? repoDefault)
      : evaluate(downstream.repoExpr, base, REPOSITORY_VARIABLES, `${at}.downstream.repoExpr`);
  const repository = inputs.repository(repo);
  if (repository === undefined)
    throw new SluiceError(
      'InvalidInput',
      `repository "${repo}" could not be loaded; register it${nearHint(repo, inputs.repositories())}`,
    );
  const bindings = { ...base, repository: inputOf(repository) };
  const text = (expression: string, where: string) =>
    evaluate(expression, bindings, TEMPLATE_VARIABLES, `${at}.${where}`);
  const map = (
    fixed: Readonly<Record<string, string>> | undefined,
    expressions: MapExpressions | undefined,
    where: string,
  ) => mapOf(fixed, expressions, where, text);
  const { packageContext, pipeline, injectors } = template;
  const functions = (list: 'mutators' | 'validators') =>
    pipeline?.[list]?.map(({ configMapExprs, configMap, ...entry }, index) => ({
      ...entry,
      configMap: map(configMap, configMapExprs, `pipeline.${list}[${index}].configMapExprs`),
    }));
  const spec = {
    upstream,
    downstream: {
      repo,
      package:
        downstream.packageExpr === undefined
          ? (downstream.package ?? packageDefault)
          : text(downstream.packageExpr, 'downstream.packageExpr'),
    },
    adoptionPolicy: template.adoptionPolicy,
    deletionPolicy: template.deletionPolicy,
    labels: map(template.labels, template.labelExprs, 'labelExprs'),
    annotations: map(template.annotations, template.annotationExprs, 'annotationExprs'),
    packageContext: packageContext && {
      data: map(packageContext.data, packageContext.dataExprs, 'packageContext.dataExprs'),
      removeKeys: keysOf(packageContext, text),
    },
    pipeline: pipeline && { mutators: functions('mutators'), validators: functions('validators') },
    injectors: injectors?.map(({ name, nameExpr, ...rest }, index) => ({
      ...rest,
      name: nameExpr === undefined ? name : text(nameExpr, `injectors[${index}].nameExpr`),
    })),
  } satisfies Partial<Record<keyof PackageVariant['spec'], unknown>>;
  return withoutAbsent(spec);
}

type Text = (expression: string, where: string) => string;

/** The fields of an object that expressions may read. */
function inputOf({ metadata }: { readonly metadata: ObjectMeta }) {
  const { name, namespace = '', labels = {}, annotations = {} } = metadata;
  return { name, namespace, labels, annotations };
}

function mapOf(
  fixed: Readonly<Record<string, string>> | undefined,
  expressions: MapExpressions = [],
  where: string,
  text: Text,
): Record<string, string> | undefined {
  const entries = expressions.map(({ key = '', keyExpr, value = '', valueExpr }, index) => [
    keyExpr === undefined ? key : text(keyExpr, `${where}[${index}].keyExpr`),
    valueExpr === undefined ? value : text(valueExpr, `${where}[${index}].valueExpr`),
  ]);
  const result = Object.fromEntries([...Object.entries(fixed ?? {}), ...entries]) as Record<string, string>;
  return Object.keys(result).length === 0 ? undefined : result;
}

function keysOf(
  { removeKeys = [], removeKeyExprs = [] }: NonNullable<Template['packageContext']>,
  text: Text,
): string[] | undefined {
  const evaluated = removeKeyExprs.map((expression, index) =>
    text(expression, `packageContext.removeKeyExprs[${index}]`),
  );
  const keys = [...new Set([...removeKeys, ...evaluated])].sort();
  return keys.length === 0 ? undefined : keys;
}

function evaluate(
  expression: string,
  bindings: Readonly<Record<string, unknown>>,
  variables: readonly string[],
  field: string,
): string {
  let value: unknown;
  try {
    value = compileExpression(expression, variables, TEMPLATE_LIMITS).evaluate(bindings);
  } catch (error) {
    throw new SluiceError('InvalidInput', `${field}: ${messageOf(error)}`, { cause: error });
  }
  if (typeof value === 'string') return value;
  throw new SluiceError('InvalidInput', `${field}: ${notText(expression, value)}`);
}

function withoutAbsent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutAbsent);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (inner === undefined ? [] : [[key, withoutAbsent(inner)]])),
  );
}
