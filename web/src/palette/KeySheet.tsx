import { Dialog } from "../ui/Dialog";
import { Kbd } from "../ui/Kbd";
import { MOD } from "../ui/mod";
import { capsOf, KEY_GROUPS } from "./keymap";

export default function KeySheet({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog
      title="Keyboard shortcuts"
      lead="Shortcuts do not work while you type in a field."
      size="large"
      onClose={onClose}
    >
      <div className="gap-x-10 sm:columns-2 lg:columns-3">
        {KEY_GROUPS.map((group) => (
          <section key={group.name} className="mb-5 break-inside-avoid">
            <h3 className="mb-1 font-medium text-[11px] text-dim">{group.name}</h3>
            <dl>
              {group.lines.map((line) => (
                <div key={line.does} className="flex h-8 items-center gap-4 border-line/70 border-b last:border-b-0">
                  <dt className="min-w-0 flex-1 truncate">{line.does}</dt>
                  <dd className="flex gap-2">
                    {line.keys.map((key) => (
                      <span key={key} className="flex gap-0.5">
                        {capsOf(key, MOD).map((cap) => (
                          <Kbd key={cap}>{cap}</Kbd>
                        ))}
                      </span>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
