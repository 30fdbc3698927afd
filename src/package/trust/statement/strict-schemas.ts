import { z } from 'zod';

/*
 * zod reports every issue of a value. A text that any user may push can have millions, and collecting them blocks the event loop for
 * seconds; these schemas stop at the first invalid item.
 */

/** A list; the first item that does not fit is reported. */
export function listOf<Item extends z.ZodType>(item: Item) {
  return z.array(z.unknown()).transform((values, context): z.output<Item>[] => {
    const items: z.output<Item>[] = [];
    for (const [index, value] of values.entries()) {
      const parsed = item.safeParse(value);
      if (!parsed.success) {
        context.addIssue({ code: 'custom', path: [index], message: parsed.error.issues[0]?.message ?? 'is not valid' });
        return z.NEVER;
      }
      items.push(parsed.data);
    }
    return items;
  });
}

/** An object with any keys; the first value that does not fit is reported. */
export function mapOf<Value extends z.ZodType>(value: Value) {
  return z.record(z.string(), z.unknown()).transform((fields, context): Record<string, z.output<Value>> => {
    for (const [key, field] of Object.entries(fields)) {
      const parsed = value.safeParse(field);
      if (parsed.success) continue;
      context.addIssue({ code: 'custom', path: [key], message: parsed.error.issues[0]?.message ?? 'is not valid' });
      return z.NEVER;
    }
    return fields as Record<string, z.output<Value>>;
  });
}
