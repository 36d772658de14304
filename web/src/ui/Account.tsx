import { CircleUser, LogOut, Settings } from "lucide-react";
import { useLocation } from "wouter";
import { useSession, useSignOut } from "../use/useSession";
import { Menu } from "./Menu";
import { toast } from "./toast";

export function Account() {
  const session = useSession();
  const signOut = useSignOut();
  const [, go] = useLocation();
  const leave = (): void => {
    signOut().catch(() => toast("Signing out did not reach the server. Try again.", { kind: "bad" }));
  };
  return (
    <Menu
      label={`Signed in as ${session.caller}`}
      icon={<CircleUser size={16} aria-hidden="true" />}
      items={[
        { label: "Settings", icon: <Settings size={14} aria-hidden="true" />, onSelect: () => go("/settings") },
        "-",
        { label: "Sign out", icon: <LogOut size={14} aria-hidden="true" />, onSelect: leave },
      ]}
    />
  );
}
