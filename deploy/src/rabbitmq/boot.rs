//! Making the broker start faster.
//!
//! At every start it looks for markers in all modules of all its applications, about 800, and loads them one by one for
//! it: that is more than half of its start (4 of 7 s on a shared machine with two cores). Loaded beforehand in batches, on
//! the second core while the first reads the configuration, they take a third of it.

/// The applications a broker without plugins consists of. One that a version does not have is left out.
const APPLICATIONS: &str = "kernel,stdlib,sasl,rabbit,rabbit_common,rabbitmq_prelaunch,compiler,syntax_tools,ssl,\
    mnesia,os_mon,inets,xmerl,asn1,crypto,public_key,runtime_tools,ra,osiris,ranch,recon,sysmon_handler";

/// Value for `ERL_AFLAGS`, which Erlang puts in front of the command line.
///
/// Batches of 32, each followed by a garbage collection: in one batch the binaries of all modules are in memory at once,
/// which leaves the broker 100 MB bigger. The application's own folder goes to the front of the code path, so that a module
/// is not looked for in 90 others first. Nothing depends on this: should it fail, modules are loaded as they are needed.
pub(super) fn flags() -> String {
    let load = "Load=fun(_,[])->ok;(Again,Modules)->\
        {Batch,Rest}=lists:split(min(32,length(Modules)),Modules),\
        code:ensure_modules_loaded(Batch),erlang:garbage_collect(),Again(Again,Rest)end";
    let each = format!(
        "[begin(code:add_patha(filename:dirname(File))),\
         {{ok,[{{application,_,Properties}}]}}=file:consult(File),\
         Load(Load,proplists:get_value(modules,Properties))end\
         ||Application<-[{APPLICATIONS}],\
         File<-[code:where_is_file(atom_to_list(Application)++\".app\")],is_list(File)]"
    );
    // Child processes must not inherit the flags.
    format!("-eval 'os:unsetenv(\"ERL_AFLAGS\"),spawn(fun()->{load},{each}end)'")
}
