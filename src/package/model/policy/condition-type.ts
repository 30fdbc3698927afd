/** The object that a Nephio-style condition type `<group>/<version>.<Kind>.<name>` speaks about. */
export interface ConditionSubject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/**
 * Splits a condition type. Nephio splits naively and loses names with dots; here everything behind the kind is the name.
 * Undefined for types of another form, such as `Rendered` or `nephio.org.Specializer.specialize`.
 */
export function parseConditionType(type: string): ConditionSubject | undefined {
  const match = /^([a-z0-9.-]+)\/(v[0-9][a-z0-9]*)\.([A-Z][A-Za-z0-9]*)\.(.+)$/.exec(type);
  if (match === null) return undefined;
  const [, group, version, kind, name] = match as unknown as [string, string, string, string, string];
  return { apiVersion: `${group}/${version}`, kind, name };
}

export function formatConditionType(subject: ConditionSubject): string {
  return `${subject.apiVersion}.${subject.kind}.${subject.name}`;
}
