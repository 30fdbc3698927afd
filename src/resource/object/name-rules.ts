/** The rules for names, after RFC 1123 and the Kubernetes API. The message of each rule states the fix. */
export interface NameRule {
  readonly pattern: RegExp;
  readonly maxLength: number;
  readonly rule: string;
}

export const DNS_LABEL: NameRule = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  maxLength: 63,
  rule: 'must be lower case letters, digits or "-", start and end with a letter or digit, and have at most 63 characters',
};

export const DNS_SUBDOMAIN: NameRule = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  maxLength: 253,
  rule: 'must be lower case letters, digits, "-" or ".", start and end with a letter or digit, and have at most 253 characters',
};

/** Names that are only one part of a path: roles are called `system:admin`, API services `v1.`. */
export const PATH_SEGMENT: NameRule = {
  pattern: /^(?!\.{1,2}$)[^/%\s\u0000-\u001f\u007f]+$/,
  maxLength: 253,
  rule: 'must not be "." or "..", must not contain "/", "%", spaces or control characters, and have at most 253 characters',
};

/** The name part of a label key. */
const NAME_PART = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** True for a name that follows the rule. */
export function followsRule(name: string, rule: NameRule): boolean {
  return name.length <= rule.maxLength && rule.pattern.test(name);
}

/** True for `name` or `dns.sub.domain/name`, the form of label keys, annotation keys and finalizers. */
export function isQualifiedName(text: string): boolean {
  const slash = text.indexOf('/');
  const name = text.slice(slash + 1);
  return (slash < 0 || followsRule(text.slice(0, slash), DNS_SUBDOMAIN)) && name.length <= 63 && NAME_PART.test(name);
}

/** True for a label value: empty, or at most 63 letters, digits, `-`, `_`, `.`, with a letter or digit at both ends. */
export function isLabelValue(text: string): boolean {
  return text === '' || (text.length <= 63 && NAME_PART.test(text));
}
